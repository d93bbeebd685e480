# Installs the trace command with its manual, completions and the unit of the system-wide manager.
#
#   make install                          into /usr/local
#   make install DESTDIR=stage PREFIX=/usr
#   make install NAME=fxtrace             where another trace is a command already
#   make uninstall
#   make install-c                        the libraries for C and C++, with their headers
#   make uninstall-c
#   make nightly                          mutations, kills, fuzzing and other campaigns

PREFIX ?= /usr/local
NAME ?= trace
BINDIR = $(PREFIX)/bin
MANDIR = $(PREFIX)/share/man/man1
BASHDIR = $(PREFIX)/share/bash-completion/completions
ZSHDIR = $(PREFIX)/share/zsh/site-functions
FISHDIR = $(PREFIX)/share/fish/vendor_completions.d
UNITDIR = $(PREFIX)/lib/systemd/system
TOOL = target/release/trace
BUILD ?= cargo build --release --locked -p trace-cli

# Of the library. It follows the version of the workspace; the number behind `.so` in its soname is that of its layout.
LIBDIR = $(PREFIX)/lib
INCLUDEDIR = $(PREFIX)/include/libtrace
CMAKEDIR = $(LIBDIR)/cmake/Trace
# One records, the other reads.
LIBRARIES_C = libtrace libtracereader
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
BUILD_C ?= cargo build --release --locked -p trace-c -p trace-reader-c
OUTPUT_C ?= target/release
FILL = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(VERSION)|'
PACKAGING_C = crates/trace-c/packaging

.PHONY: all nightly install uninstall install-c uninstall-c

all:
	$(BUILD)

# What takes hours: see .ci/nightly.
nightly:
	.ci/nightly

install: all
	install -D -m 755 $(TOOL) $(DESTDIR)$(BINDIR)/$(NAME)
	$(TOOL) man --name $(NAME) $(DESTDIR)$(MANDIR)
	mkdir -p $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR) $(DESTDIR)$(FISHDIR) $(DESTDIR)$(UNITDIR)
	$(TOOL) completions --name $(NAME) bash > $(DESTDIR)$(BASHDIR)/$(NAME)
	$(TOOL) completions --name $(NAME) zsh > $(DESTDIR)$(ZSHDIR)/_$(NAME)
	$(TOOL) completions --name $(NAME) fish > $(DESTDIR)$(FISHDIR)/$(NAME).fish
	sed -e 's|@BINDIR@|$(BINDIR)|' -e 's|@NAME@|$(NAME)|' packaging/trace-manager.service \
		> $(DESTDIR)$(UNITDIR)/$(NAME)-manager.service

uninstall:
	rm -f $(DESTDIR)$(BINDIR)/$(NAME) $(DESTDIR)$(MANDIR)/$(NAME).1 $(DESTDIR)$(MANDIR)/$(NAME)-*.1
	rm -f $(DESTDIR)$(BASHDIR)/$(NAME) $(DESTDIR)$(ZSHDIR)/_$(NAME) $(DESTDIR)$(FISHDIR)/$(NAME).fish
	rm -f $(DESTDIR)$(UNITDIR)/$(NAME)-manager.service

install-c:
	$(BUILD_C)
	for name in $(LIBRARIES_C); do \
		install -D -m 755 $(OUTPUT_C)/$$name.so $(DESTDIR)$(LIBDIR)/$$name.so.$(VERSION) && \
		ln -sf $$name.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$$name.so.0 && \
		ln -sf $$name.so.0 $(DESTDIR)$(LIBDIR)/$$name.so && \
		install -m 644 $(OUTPUT_C)/$$name.a $(DESTDIR)$(LIBDIR)/$$name.a || exit; \
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
	rm -rf $(DESTDIR)$(CMAKEDIR) $(DESTDIR)$(INCLUDEDIR)
