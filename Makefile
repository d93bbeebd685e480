# Installs the trace command with its manual, completions and the unit of the system-wide manager.
#
#   make install                          into /usr/local
#   make install DESTDIR=stage PREFIX=/usr
#   make install NAME=fxtrace             where another trace is a command already
#   make uninstall

PREFIX ?= /usr/local
NAME ?= trace
BINDIR = $(PREFIX)/bin
MANDIR = $(PREFIX)/share/man/man1
BASHDIR = $(PREFIX)/share/bash-completion/completions
ZSHDIR = $(PREFIX)/share/zsh/site-functions
FISHDIR = $(PREFIX)/share/fish/vendor_completions.d
UNITDIR = $(PREFIX)/lib/systemd/system
TOOL = target/release/trace

.PHONY: all install uninstall

all:
	cargo build --release --locked -p trace-cli

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
