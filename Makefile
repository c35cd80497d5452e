# Straddle - the only build file.  `make help` lists the targets.
#
#   make V=1            show the commands
#   make CC=clang-14    another compiler
#   make SAN=address    build/address: ASan and UBSan (SAN=thread: TSan)
#   make CROSS=aarch64-linux-gnu-   build/aarch64-linux-gnu

VERSION := 0.1.0
ifneq ($(CROSS),)
CC      := $(CROSS)gcc
AR      := $(CROSS)ar
B       := build/$(patsubst %-,%,$(CROSS))
else
CC      ?= gcc
AR      ?= ar
B       := $(if $(SAN),build/$(SAN),build)
endif
ifeq ($(origin CC),default)
CC      := gcc
endif
ARCH    := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))

# -ffp-contract=off: fused and unfused products would differ between kernels
# and stage borders.  FMA is used where it is written.
CFLAGS  ?= -O2 -g
STRICT  := -std=gnu11 -Wall -Wextra -Werror -Wshadow -Wcast-qual \
           -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
           -Wold-style-definition -Wwrite-strings -Wvla -Wformat=2 \
           -ffp-contract=off -fno-strict-aliasing -pthread -I.
ALLFLAGS = $(STRICT) $(CFLAGS) $(SANFLAGS) -D_GNU_SOURCE \
           -DSTRADDLE_VERSION='"$(VERSION)"'
LIBS    := -luring -lnuma -lseccomp -lbsd -lconfuse -ljansson -lpcre2-8 \
           -ledit -lm
CHECKLIBS := -lcheck -lsubunit -lrt

ifeq ($(SAN),address)
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all \
            -fno-omit-frame-pointer
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
# gcc would move the loads of unrolled tiles ahead, until the 32 registers are
# full and their accumulators on the stack; clang has no such pass.
UNMOVED := $(if $(findstring clang,$(CC)),,-fno-schedule-insns)
FLAGS_kernels/arm/neon.o := $(UNMOVED)
FLAGS_kernels/arm/dotprod.o := -march=armv8.2-a+dotprod $(UNMOVED)
FLAGS_kernels/arm/i8mm.o := -march=armv8.2-a+dotprod+i8mm $(UNMOVED)

# The loops of bench's roofline: nothing that a model computes.
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
files_in = $(sort $(shell find $(1) -type f -name '$(2)'))
# Code of a Hexagon domain is built for another processor, below.
SRCS    := $(filter-out $(wildcard kernels/hexagon/*.c), \
           $(call files_in,$(DIRS),*.c))
ifneq ($(ARCH),x86_64)
SRCS    := $(filter-out kernels/x86/% kernels/peak/x86_%,$(SRCS))
endif
ifneq ($(ARCH),aarch64)
SRCS    := $(filter-out kernels/arm/% kernels/peak/arm_%,$(SRCS))
endif
MAINOBJ := $(B)/coordinator/main.o
OBJS    := $(filter-out $(MAINOBJ),$(SRCS:%.c=$(B)/%.o))
LIB     := $(B)/libstraddle.a

# Programs of the tests; tests/support/ and the rest of tests/check/ are shared
# by them.
PROGSRC := $(sort $(wildcard tests/unit/*.c tests/check/bench_*.c) \
           $(filter-out tests/fuzz/main.c,$(wildcard tests/fuzz/*.c)) \
           tests/check/hexagon.c tests/check/kernels.c \
           tests/check/ring_loop.c $(wildcard tests/tools/*.c))
# In the place of the vendor's library of the same name.
STANDIN := tests/standin/cdsprpc.c
TESTLIB := $(B)/tests/libtests.a
TESTOBJ := $(patsubst %.c,$(B)/%.o,$(filter-out $(PROGSRC) $(STANDIN), \
           $(call files_in,tests,*.c)))
PROGS   := $(PROGSRC:%.c=$(B)/%) $(B)/tests/standin/libcdsprpc.so
UNIT    := $(filter $(B)/tests/unit/%,$(PROGS))
# Where every run is many times slower, the scripts that are made of many runs
# stay out: what they hold is held by the tiers that are fast.
E2E     := $(sort $(filter-out tests/e2e/lib.sh tests/e2e/big.sh, \
           $(wildcard tests/e2e/*.sh)))
ifneq ($(CROSS),)
E2E     := tests/e2e/smoke.sh
else ifeq ($(SAN),thread)
E2E     := tests/e2e/smoke.sh tests/e2e/processes.sh
else ifeq ($(SAN),address)
E2E     := $(filter-out tests/e2e/invariance.sh,$(E2E))
endif
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(filter tests/fuzz/%.c,$(PROGSRC)))

# The program of a Hexagon domain: code for HVX of v67, freestanding, which
# qemu-hexagon runs.  Only where its compiler and linker are installed.
HEXCC   ?= clang-14
HEXLD   ?= ld.lld-14
DOMAIN  := $(if $(and $(shell command -v $(HEXCC)), \
           $(shell command -v $(HEXLD))),$(B)/hexagon-domain)
HEXFLAGS := --target=hexagon-unknown-linux-musl -mv67 -mhvx=v67 \
           -mhvx-length=128B -ffreestanding -nostdlibinc -fno-builtin -I. \
           -fno-pic -G0 -std=gnu11 -O2 -Wall -Wextra -Werror -Wshadow \
           -Wcast-qual -Wmissing-prototypes -ffp-contract=off \
           -fno-strict-aliasing
HEXOBJS := $(patsubst %.c,$(B)/%.o,$(filter-out %/skel.c, \
           $(sort $(wildcard kernels/hexagon/*.c))))

# The same code as the module of a DSP, which FastRPC loads.  Debian's compiler
# makes it; with HEXAGON_SDK_ROOT, that of Qualcomm's SDK does.
SKELARCH ?= v68
SKEL    := $(if $(DOMAIN)$(HEXAGON_SDK_ROOT),$(B)/libstraddle-domain-$(SKELARCH).so)
SKELSRC := $(filter-out %/loop.c %/rt.c,$(sort $(wildcard kernels/hexagon/*.c)))
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

.SUFFIXES:
.SECONDARY:
$(V)$(VERBOSE).SILENT:

all: $(B)/straddle $(DOMAIN) $(SKEL)

$(B)/straddle: $(MAINOBJ) $(LIB)
	echo "  LINK  $@"
	$(CC) $(ALLFLAGS) -o $@ $^ $(LDFLAGS) $(LIBS)

$(LIB): $(OBJS)
	echo "  AR    $@"
	rm -f $@ && $(AR) qcs $@ $^

$(B)/%.o: %.c Makefile
	echo "  CC    $<"
	mkdir -p $(@D)
	$(CC) $(ALLFLAGS) $(FLAGS_$*.o) -MMD -MP -c -o $@ $<

$(B)/kernels/hexagon/%.o: kernels/hexagon/%.c Makefile
	echo "  HEXCC $<"
	mkdir -p $(@D)
	$(HEXCC) $(HEXFLAGS) -MMD -MP -c -o $@ $<

$(B)/hexagon-domain: $(HEXOBJS)
	echo "  HEXLD $@"
	$(HEXLD) -static -o $@ $^

$(B)/skel/%.o: kernels/hexagon/%.c Makefile
	echo "  HEXCC $< ($(SKELARCH))"
	mkdir -p $(@D)
	$(SKELCC) $(SKELFLAGS) -MMD -MP -c -o $@ $<

$(B)/libstraddle-domain-$(SKELARCH).so: $(SKELOBJS)
	echo "  HEXLD $@"
	$(SKELLD) -o $@ $^

skel: $(SKEL)
	[ -n "$(SKEL)" ] || { echo "make skel needs $(HEXCC) and $(HEXLD)," \
	    "or HEXAGON_SDK_ROOT" >&2; exit 1; }

# A test links only what it uses: the archives give no more.
$(TESTLIB): $(TESTOBJ)
	echo "  AR    $@"
	rm -f $@ && $(AR) qcs $@ $^
$(B)/tests/unit/%: $(B)/tests/unit/%.o $(TESTLIB) $(LIB)
	echo "  LINK  $@"
	$(CC) $(ALLFLAGS) -o $@ $^ $(LDFLAGS) $(CHECKLIBS) $(LIBS)
$(B)/tests/%: $(B)/tests/%.o $(TESTLIB) $(LIB)
	echo "  LINK  $@"
	$(CC) $(ALLFLAGS) -o $@ $^ $(LDFLAGS) $(LIBS)

$(B)/tests/standin/libcdsprpc.so: $(STANDIN) shm/event.c \
    $(wildcard kernels/hexagon/*.h) tests/standin/cdsprpc.h shm/event.h Makefile
	echo "  CC    $@"
	mkdir -p $(@D)
	$(CC) $(ALLFLAGS) -fPIC -shared -Wl,-soname,libcdsprpc.so -o $@ \
	    $(STANDIN) shm/event.c $(LDFLAGS)

# The program itself, with functions of tests/tools/faulty.c in front of others.
WRAPPED := $(shell grep -o '^__wrap_[a-z_]*' tests/tools/faulty.c)
$(B)/tests/tools/faulty: $(B)/tests/tools/faulty.o $(MAINOBJ) $(LIB)
	echo "  LINK  $@"
	$(CC) $(ALLFLAGS) $(WRAPPED:__wrap_%=-Wl,--wrap=%) -o $@ $^ $(LDFLAGS) $(LIBS)

# --- for users ---

# Installs what is missing, builds, and runs the small model of the tests over
# four sessions.
demo:
	.ci/deps build
	$(MAKE) --no-print-directory all
	build/straddle run -c config/demo.conf -p "In the beginning" -n 64 \
	    --seed 1

# What a board needs, in one archive: unpack it there and run ./straddle.
DIST    := straddle-$(VERSION)-$(ARCH)
dist: $(B)/straddle $(SKEL) $(DOMAIN)
	rm -rf $(B)/$(DIST) && mkdir -p $(B)/$(DIST)/config $(B)/$(DIST)/tests/data
	cp $^ $(B)/$(DIST)
	cp README.md LICENSE $(B)/$(DIST)
	cp -r config/*.conf config/man $(B)/$(DIST)/config
	cp tests/data/kjv-q8_0.gguf $(B)/$(DIST)/tests/data
	tar -C $(B) -czf $(B)/$(DIST).tar.gz $(DIST)
	$(if $(SKEL),,echo "  without the DSP's module: it takes $(HEXCC) and $(HEXLD)";) \
	echo "  DIST  $(B)/$(DIST).tar.gz"

# --- tests; tests/README.md says what each program does ---

# Quick and complete: what everyone runs.
check:
	.ci/deps check
	$(MAKE) --no-print-directory check-built

check-built: all $(PROGS) check-includes
	B=$(B) tests/run.sh $(CHECKS)

# The longest first: the others run beside it.  One thread by itself is nothing
# to TSan.
KERNELS := $(B)/tests/check/kernels $(B)/tests/check/hexagon
CHECKS  := $(if $(filter thread,$(SAN)),,$(KERNELS)) $(E2E) $(UNIT) \
           $(B)/tests/check/ring_loop $(addprefix replay:,$(FUZZERS))

check-kernels: $(B)/tests/check/kernels
	$(B)/tests/check/kernels

check-includes:
	CC="$(CC)" tests/check_includes.py

check-asan:
	.ci/deps check
	$(MAKE) --no-print-directory SAN=address check-built
check-tsan:
	.ci/deps check
	$(MAKE) --no-print-directory SAN=thread check-built
check-clang:
	.ci/deps clang
	$(MAKE) --no-print-directory CC=clang-14 B=build/clang all \
	    check-programs
check-programs: $(PROGS)

# Built for aarch64 and run under user emulation.
check-arm64:
	.ci/deps arm64
	$(MAKE) --no-print-directory CROSS=aarch64-linux-gnu- check-built

# A model larger than any one cap; writes 850 MB.
check-big: all $(B)/tests/tools/mkgguf
	tests/run.sh tests/e2e/big.sh

# So many workers are lost at random moments; minutes.
KILLS   ?= 1000
check-kills: all
	KILLS=$(KILLS) tests/tools/kills.py $(B)/straddle

# Memory groups of v2 on a kernel that has nothing else, in a machine of its own.
check-vm: all $(B)/tests/unit/cgroup $(B)/tests/tools/mkgguf
	.ci/deps vm
	TIME_S=1900 tests/run.sh tests/tools/vm.sh

# Every case of straddle stress, and SOAK_S seconds of texts and losses.
SOAK_S  ?= 60
check-stress: all
	timeout 3600 $(B)/straddle stress -c config/demo.conf
	timeout $$(($(SOAK_S) + 900)) $(B)/straddle stress \
	    -c config/demo.conf --soak $(SOAK_S)

# Held against data that nobody here tuned for, where it is beside the tree.
SHARED  ?= ../shared
CONFORM := $(addprefix llama-,f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 mxfp4) \
           $(addprefix llama256-,q4_0 iq4_nl iq4_xs q2_k q3_k_m q4_k_m \
           q4_k_m-mix q5_k_m q6_k) llama3-q8_0 \
           $(addsuffix -q8_0,qwen2 qwen3 gemma2 gemma3 phi3 mixtral \
           qwen3moe) \
           $(addprefix gpt-oss-,f32 mxfp4)
check-conformance: all
	SHARED=$(SHARED) tests/tools/conformance.sh "$(CONFORM)"

# Coverage-guided, FUZZ_S seconds each; every crash becomes a corpus file.
FUZZ_S  ?= 60
# The flags of object F's own, for those who compile it otherwise.
print-flags:
	echo '$(FLAGS_$(F))'

check-fuzz:
	.ci/deps clang
	FUZZ_S=$(FUZZ_S) tests/fuzz/run.sh $(FUZZERS)

# Each thing that can fail fails once, in most commands; TORTURE_S seconds for
# each of them, which is enough for all but the largest.
TORTURE_S ?= 60
check-torture: all $(B)/tests/tools/faulty $(B)/tests/tools/mkgguf
	B=$(B) TORTURE=all TORTURE_S=$(TORTURE_S) TIME_S=3600 \
	    tests/run.sh tests/e2e/torture.sh

clean:
	rm -rf build

help:
	echo "make               build/straddle"
	echo "make demo          install what is missing, build, generate text"
	echo "make dist          an archive to carry to a board (CROSS=...)"
	echo "make skel          the DSP's module alone (HEXAGON_SDK_ROOT=...)"
	echo "make check         the tests: quick and complete"
	echo "  check-asan       the same under ASan and UBSan"
	echo "  check-tsan       the same under TSan"
	echo "  check-clang      everything builds with clang"
	echo "  check-arm64      cross-built, under user emulation"
	echo "  check-big        a model larger than any one cap (850 MB)"
	echo "  check-kills      KILLS (1000) workers are lost; minutes"
	echo "  check-vm         cgroup v2 alone, on Debian's kernel under qemu"
	echo "  check-fuzz       each fuzzer for FUZZ_S seconds (60)"
	echo "  check-stress     every case of stress, and SOAK_S (60) of soak"
	echo "  check-torture    each allocation, map, descriptor fails in turn"
	echo "  check-conformance  against data in SHARED (../shared)"
	echo "  check-kernels check-includes   those two alone"
	echo "make clean"
	echo "V=1 shows commands; CC=clang-14; SAN=address|thread;"
	echo "CROSS=aarch64-linux-gnu- builds for aarch64"

.PHONY: all demo dist skel check check-built check-kernels check-includes check-asan \
    check-tsan check-clang check-programs check-arm64 check-conformance \
    check-big check-vm check-fuzz check-kills check-stress check-torture \
    print-flags clean help

-include $(if $(wildcard $(B)),$(call files_in,$(B),*.d))
