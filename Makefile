# Installs the trace command with its manual, completions and the units of managers that systemd starts.
#
#   make install                          into /usr/local
#   make install DESTDIR=stage PREFIX=/usr
#   make install NAME=fxtrace             where another trace is a command already
#   make install DEBUGDIR=                without debug information, which else goes to PREFIX/lib/debug
#   make uninstall                        with the same variables
#   make install-ui                       a copy of the Perfetto UI, for `trace view` without network
#   make uninstall-ui
#   make install-c                        the libraries for C and C++, with their headers
#   make uninstall-c
#   make static                           one file that runs anywhere: target/static/trace
#   make deb rpm                          packages, in target/packages
#   make nightly                          mutations, kills, fuzzing and other campaigns

PREFIX ?= /usr/local
NAME ?= trace
BINDIR = $(PREFIX)/bin
MANDIR = $(PREFIX)/share/man/man1
BASHDIR = $(PREFIX)/share/bash-completion/completions
ZSHDIR = $(PREFIX)/share/zsh/site-functions
FISHDIR = $(PREFIX)/share/fish/vendor_completions.d
# Of units of the system and of users.
UNITDIR = $(PREFIX)/lib/systemd
UNITS = $(foreach whose,system user,$(foreach kind,socket service,$(whose)/trace-manager.$(kind)))
DEBUGDIR = $(PREFIX)/lib/debug
# `trace view` finds it beside its own directory.
UIDIR = $(PREFIX)/share/trace/perfetto-ui
TOOL = target/release/trace
BUILD ?= cargo build --release --locked -p trace-cli

# Of the library. It follows the version of the workspace; the number behind `.so` in its soname is that of its layout.
LIBDIR = $(PREFIX)/lib
INCLUDEDIR = $(PREFIX)/include/libtrace
CMAKEDIR = $(LIBDIR)/cmake/Trace
# One records its program, one reads traces, one records other programs, one writes the program's own JSON.
LIBRARIES_C = libtrace libtracereader libtraceclient libtracejson
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
BUILD_C ?= cargo build --release --locked -p trace-c -p trace-reader-c -p trace-client-c -p trace-json-c
OUTPUT_C ?= target/release
# The way from one directory to another, for files that may be moved together.
RELATIVE = $(shell realpath -m --relative-to=$(1) $(2))
FILL = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
	-e 's|@VERSION@|$(VERSION)|' -e 's|@CMAKE_TO_LIB@|$(call RELATIVE,$(CMAKEDIR),$(LIBDIR))|' \
	-e 's|@CMAKE_TO_INCLUDE@|$(call RELATIVE,$(CMAKEDIR),$(INCLUDEDIR))|'
PACKAGING_C = crates/trace-c/packaging

STRIP ?= strip
OBJCOPY ?= objcopy
INSTALL_STRIPPED = DESTDIR="$(DESTDIR)" STRIP="$(STRIP)" OBJCOPY="$(OBJCOPY)" packaging/install-stripped

# Of `make static`. glibc's target does, too, for programs that look up no hosts or users by name.
TARGET = $(shell uname -m)-unknown-linux-musl
STATIC = target/static/trace
PACKAGES = target/packages

.PHONY: all nightly install uninstall install-ui uninstall-ui install-c uninstall-c static deb rpm

# What is installed has its debug information beside it.
all deb rpm install-c: export CARGO_PROFILE_RELEASE_DEBUG ?= line-tables-only

all:
	$(BUILD)

# What takes hours: see .ci/nightly.
nightly:
	.ci/nightly

# rustc alone knows whether it has the target's standard library; cc looks for the compilers of C by these names.
static:
	@test -d "$$(rustc --print target-libdir --target $(TARGET))" || \
		{ echo "make static: Rust's standard library for $(TARGET) is not installed: rustup target add $(TARGET)" >&2; exit 1; }
	@case $(TARGET) in *-musl) \
		test -n "$$CC_$(subst -,_,$(TARGET))$$TARGET_CC" || command -v musl-gcc $(TARGET:-unknown-linux-musl=)-linux-musl-gcc >/dev/null || \
		{ echo "make static: no C compiler for musl: install musl-tools, or name one in CC_$(subst -,_,$(TARGET))" >&2; exit 1; };; \
	esac
	RUSTFLAGS="$$RUSTFLAGS -C target-feature=+crt-static" cargo build --release --locked -p trace-cli --target $(TARGET)
	DESTDIR= STRIP="$(STRIP)" packaging/install-stripped target/$(TARGET)/release/trace $(STATIC)

deb rpm:
	$(BUILD)
	$(BUILD_C)
	NAME="$(NAME)" VERSION="$(VERSION)" MAKE="$(MAKE)" packaging/package $@ $(PACKAGES)

install: all
	$(INSTALL_STRIPPED) $(TOOL) $(BINDIR)/$(NAME) $(DEBUGDIR)
	$(TOOL) man --name $(NAME) $(DESTDIR)$(MANDIR)
	mkdir -p $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR) $(DESTDIR)$(FISHDIR) $(DESTDIR)$(UNITDIR)/system $(DESTDIR)$(UNITDIR)/user
	$(TOOL) completions --name $(NAME) bash > $(DESTDIR)$(BASHDIR)/$(NAME)
	$(TOOL) completions --name $(NAME) zsh > $(DESTDIR)$(ZSHDIR)/_$(NAME)
	$(TOOL) completions --name $(NAME) fish > $(DESTDIR)$(FISHDIR)/$(NAME).fish
	for unit in $(UNITS); do \
		sed -e 's|@BINDIR@|$(BINDIR)|' -e 's|@NAME@|$(NAME)|' packaging/systemd/$$unit \
			> $(DESTDIR)$(UNITDIR)/$${unit%%/*}/$(NAME)-$${unit#*/trace-} || exit; \
	done

uninstall:
	rm -f $(DESTDIR)$(BINDIR)/$(NAME) $(DESTDIR)$(MANDIR)/$(NAME).1 $(DESTDIR)$(MANDIR)/$(NAME)-*.1
	rm -f $(DESTDIR)$(BASHDIR)/$(NAME) $(DESTDIR)$(ZSHDIR)/_$(NAME) $(DESTDIR)$(FISHDIR)/$(NAME).fish
	rm -f $(foreach unit,$(UNITS),$(DESTDIR)$(UNITDIR)/$(subst /trace-,/$(NAME)-,$(unit)))
	$(if $(DEBUGDIR),rm -f $(DESTDIR)$(DEBUGDIR)$(BINDIR)/$(NAME).debug)

install-ui:
	DESTDIR="$(DESTDIR)" UI_WHEEL="$(UI_WHEEL)" PYTHON="$(PYTHON)" packaging/install-ui $(UIDIR)

uninstall-ui:
	rm -rf $(DESTDIR)$(UIDIR)
	rmdir $(DESTDIR)$(dir $(UIDIR)) 2> /dev/null || true

install-c:
	$(BUILD_C)
	for name in $(LIBRARIES_C); do \
		$(INSTALL_STRIPPED) $(OUTPUT_C)/$$name.so $(LIBDIR)/$$name.so.$(VERSION) $(DEBUGDIR) && \
		ln -sf $$name.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$$name.so.0 && \
		ln -sf $$name.so.0 $(DESTDIR)$(LIBDIR)/$$name.so && \
		install -m 644 $(OUTPUT_C)/$$name.a $(DESTDIR)$(LIBDIR)/$$name.a && \
		$(STRIP) --strip-debug $(DESTDIR)$(LIBDIR)/$$name.a || exit; \
	done
	cd crates/trace-c/include && find . -name '*.h' -exec install -D -m 644 {} $(abspath $(DESTDIR)$(INCLUDEDIR))/{} \;
	mkdir -p $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(CMAKEDIR)
	for name in $(LIBRARIES_C); do \
		$(FILL) $(PACKAGING_C)/$$name.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/$$name.pc || exit; \
	done
	$(FILL) $(PACKAGING_C)/TraceConfig.cmake.in > $(DESTDIR)$(CMAKEDIR)/TraceConfig.cmake
	$(FILL) $(PACKAGING_C)/TraceConfigVersion.cmake.in > $(DESTDIR)$(CMAKEDIR)/TraceConfigVersion.cmake

uninstall-c:
	for name in $(LIBRARIES_C); do \
		rm -f $(DESTDIR)$(LIBDIR)/$$name.so* $(DESTDIR)$(LIBDIR)/$$name.a \
			$(DESTDIR)$(LIBDIR)/pkgconfig/$$name.pc; \
	done
	$(if $(DEBUGDIR),rm -f $(LIBRARIES_C:%=$(DESTDIR)$(DEBUGDIR)$(LIBDIR)/%.so.*.debug))
	rm -rf $(DESTDIR)$(CMAKEDIR) $(DESTDIR)$(INCLUDEDIR)
