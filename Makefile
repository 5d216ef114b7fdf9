# The only place where install paths are decided. `make help` lists the targets.

PREFIX     ?= /usr
SBINDIR    ?= $(PREFIX)/sbin
BINDIR     ?= $(PREFIX)/bin
LIBEXECDIR ?= $(PREFIX)/libexec
UDEVDIR    ?= $(PREFIX)/lib/udev
MANDIR     ?= $(PREFIX)/share/man
DOCDIR     ?= $(PREFIX)/share/doc/nfsrahead
DESTDIR    ?=

CARGO ?= cargo

# musl where its target is installed: it starts in half the time of a static glibc. Either way no shared libraries.
HOST   := $(shell rustc -vV | sed -n 's/^host: //p')
MUSL   := $(subst -gnu,-musl,$(HOST))
TARGET ?= $(shell test -d "$$(rustc --print sysroot)/lib/rustlib/$(MUSL)" && echo $(MUSL) || echo $(HOST))

HELPER := target/helper/$(TARGET)/release/nfsrahead

.DEFAULT_GOAL := help
.PHONY: help all helper tools rules demo check check-vm bench fuzz fmt lint test install uninstall clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

all: helper tools rules ## all programs and files to install

# --target keeps the static flags away from procedural macros. The helper gets only its own few crates.
helper: ## the static helper that udev runs
	$(CARGO) rustc --locked --release --no-default-features --features helper --bin nfsrahead \
		--target-dir target/helper --target $(TARGET) -- -Ctarget-feature=+crt-static -Crelocation-model=static

tools: ## the admin's command line tool
	$(CARGO) build --locked --release --no-default-features --features cli --bin nfstune

rules: target/99-nfs.rules ## the udev rule, made for LIBEXECDIR

target/99-nfs.rules: udev/99-nfs.rules.in Makefile
	@mkdir -p target
	sed 's|@LIBEXECDIR@|$(LIBEXECDIR)|g' $< > $@

install: all ## into $(DESTDIR)$(PREFIX)
	install -D -m 0755 $(HELPER) $(DESTDIR)$(LIBEXECDIR)/nfsrahead
	install -D -m 0755 target/release/nfstune $(DESTDIR)$(BINDIR)/nfstune
	install -D -m 0644 target/99-nfs.rules $(DESTDIR)$(UDEVDIR)/rules.d/99-nfs.rules
	install -D -m 0644 man/nfsrahead.8 $(DESTDIR)$(MANDIR)/man8/nfsrahead.8
	install -D -m 0644 man/nfsrahead.conf.5 $(DESTDIR)$(MANDIR)/man5/nfsrahead.conf.5

uninstall: ## what install put there
	rm -f $(DESTDIR)$(LIBEXECDIR)/nfsrahead $(DESTDIR)$(BINDIR)/nfstune $(DESTDIR)$(UDEVDIR)/rules.d/99-nfs.rules \
		$(DESTDIR)$(MANDIR)/man8/nfsrahead.8 $(DESTDIR)$(MANDIR)/man5/nfsrahead.conf.5

fmt: ## formatting, checked
	$(CARGO) fmt --check

lint: ## clippy, warnings are errors
	$(CARGO) clippy --locked --all-targets -- -D warnings

test: helper ## tests on this machine; skips are counted
	$(CARGO) test --locked

clean: ## what was built
	$(CARGO) clean
