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
           -ffp-contract=off -fno-strict-aliasing -pthread
ALLFLAGS = $(STRICT) $(CFLAGS) $(SANFLAGS) -D_GNU_SOURCE \
           -DSTRADDLE_VERSION='"$(VERSION)"'
LIBS    := -luring -lnuma -lbsd -lconfuse -ljansson -lm
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
FLAGS_kernels/x86_avx2.o := -mavx2 -mfma -mf16c

DIRS    := config shm kernels layers worker coordinator
SRCS    := $(sort $(wildcard $(addsuffix /*.c,$(DIRS))))
ifneq ($(ARCH),x86_64)
SRCS    := $(filter-out kernels/x86_%.c,$(SRCS))
endif
ifneq ($(ARCH),aarch64)
SRCS    := $(filter-out kernels/arm_%.c,$(SRCS))
endif
MAINOBJ := $(B)/coordinator/main.o
OBJS    := $(filter-out $(MAINOBJ),$(SRCS:%.c=$(B)/%.o))
LIB     := $(B)/libstraddle.a

TESTSRC := $(sort $(wildcard tests/test_*.c))
TESTS   := $(TESTSRC:%.c=$(B)/%)

.SUFFIXES:
.SECONDARY:
$(V)$(VERBOSE).SILENT:

all: $(B)/straddle

$(B)/straddle: $(MAINOBJ) $(LIB)
	echo "  LINK  $@"
	$(CC) $(ALLFLAGS) -o $@ $^ $(LDFLAGS) $(LIBS)

$(LIB): $(OBJS)
	echo "  AR    $@"
	rm -f $@ && $(AR) rcs $@ $^

$(B)/%.o: %.c Makefile
	echo "  CC    $<"
	mkdir -p $(@D)
	$(CC) $(ALLFLAGS) $(FLAGS_$*.o) -MMD -MP -c -o $@ $<

# A test links only what it uses: the archive gives no more.
$(B)/tests/test_%: $(B)/tests/test_%.o $(B)/tests/t.o $(LIB)
	echo "  LINK  $@"
	$(CC) $(ALLFLAGS) -o $@ $^ $(LDFLAGS) $(CHECKLIBS) $(LIBS)
$(B)/tests/%: $(B)/tests/%.o $(LIB)
	echo "  LINK  $@"
	$(CC) $(ALLFLAGS) -o $@ $^ $(LDFLAGS) $(LIBS)

-include $(wildcard $(B)/*/*.d)
