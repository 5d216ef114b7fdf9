# The only place where install paths are decided. `make help` lists the targets.

PREFIX     ?= /usr
SBINDIR    ?= $(PREFIX)/sbin
BINDIR     ?= $(PREFIX)/bin
LIBEXECDIR ?= $(PREFIX)/libexec
UDEVDIR    ?= $(PREFIX)/lib/udev
UNITDIR    ?= $(PREFIX)/lib/systemd/system
# systemd 253 and newer know that a reload is going on; say `notify` for older ones.
NOTIFY     ?= $(shell systemctl --version 2>/dev/null | awk 'NR == 1 { exit !($$2 >= 253) }' && echo notify-reload || echo notify)
MANDIR     ?= $(PREFIX)/share/man
BASHDIR    ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR     ?= $(PREFIX)/share/zsh/site-functions
FISHDIR    ?= $(PREFIX)/share/fish/vendor_completions.d
DOCDIR     ?= $(PREFIX)/share/doc/nfsrahead
DESTDIR    ?=

# What is made from templates, and where cargo puts the tools.
BUILD    ?= target
PROGRAMS ?= target/release

# The crates of a source package: see `make dist`.
CARGO ?= cargo $(if $(wildcard vendor/config.toml),--offline --config vendor/config.toml)
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

# musl where its target is installed: it starts in half the time of a static glibc. Either way no shared libraries.
HOST   := $(shell rustc -vV | sed -n 's/^host: //p')
MUSL   := $(subst -gnu,-musl,$(HOST))
TARGET ?= $(shell test -d "$$(rustc --print sysroot)/lib/rustlib/$(MUSL)" && echo $(MUSL) || echo $(HOST))

HELPER := target/helper/$(TARGET)/release/nfsrahead

.DEFAULT_GOAL := help
.PHONY: help all helper helper-path tools rules units manuals completions installed deb dist check-packages setup demo check check-vm tool-static bench fuzz fuzz-build fmt lint shell-lint test install uninstall clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

all: helper tools rules units manuals ## all programs and files to install

# --target keeps the static flags away from procedural macros. The helper gets only its own few crates.
helper: ## the static helper that udev runs
	$(CARGO) rustc --locked --release --no-default-features --features helper --bin nfsrahead \
		--target-dir target/helper --target $(TARGET) -- -Ctarget-feature=+crt-static -Crelocation-model=static

tools: ## the admin's command line tool and the daemon
	$(CARGO) build --locked --release --no-default-features --features cli,daemon --bin nfstune --bin nfstuned

# Made anew each time: paths on the command line are newer than any file.
.PHONY: FORCE
FILL = @mkdir -p $(@D) && sed -e 's|@LIBEXECDIR@|$(LIBEXECDIR)|g; s|@SBINDIR@|$(SBINDIR)|g; s|@BINDIR@|$(BINDIR)|g' \
	-e 's|@UDEVDIR@|$(UDEVDIR)|g; s|@NOTIFY@|$(NOTIFY)|g' \
	-e '/@RELOAD@/$(if $(filter notify,$(NOTIFY)),s|.*|ExecReload=kill -HUP $$MAINPID|,d)' $< >$@

rules: $(BUILD)/99-nfs.rules ## the udev rule, made for LIBEXECDIR

$(BUILD)/99-nfs.rules: udev/99-nfs.rules.in FORCE
	$(FILL)

units: $(BUILD)/nfstuned.service ## the service of the daemon, made for its paths

$(BUILD)/nfstuned.service: systemd/nfstuned.service.in FORCE
	$(FILL)

manuals: $(BUILD)/nfsrahead.8 ## the man page that names paths

$(BUILD)/nfsrahead.8: man/nfsrahead.8.in FORCE
	$(FILL)

completions: tools ## for bash, zsh and fish
	@mkdir -p $(BUILD)/completions
	set -e; for shell in bash zsh fish; do $(PROGRAMS)/nfstune completions $$shell > $(BUILD)/completions/$$shell; done

# Every file that is installed: its mode, where it is built, where it goes.
define FILES
0755 $(HELPER) $(LIBEXECDIR)/nfsrahead
0755 $(PROGRAMS)/nfstune $(BINDIR)/nfstune
0755 $(PROGRAMS)/nfstuned $(SBINDIR)/nfstuned
0644 $(BUILD)/99-nfs.rules $(UDEVDIR)/rules.d/99-nfs.rules
0644 $(BUILD)/nfstuned.service $(UNITDIR)/nfstuned.service
0644 $(BUILD)/nfsrahead.8 $(MANDIR)/man8/nfsrahead.8
0644 man/nfstuned.8 $(MANDIR)/man8/nfstuned.8
0644 man/nfsrahead.conf.5 $(MANDIR)/man5/nfsrahead.conf.5
0644 man/nfstune.1 $(MANDIR)/man1/nfstune.1
0644 $(BUILD)/completions/bash $(BASHDIR)/nfstune
0644 $(BUILD)/completions/zsh $(ZSHDIR)/_nfstune
0644 $(BUILD)/completions/fish $(FISHDIR)/nfstune.fish
0644 conf/nfs.conf.d/nfsrahead.conf $(DOCDIR)/examples/nfsrahead.conf
0644 conf/nfs.conf.d/nfstuned.conf $(DOCDIR)/examples/nfstuned.conf
endef
export FILES

install: all completions ## into $(DESTDIR)$(PREFIX)
	set -e; while read -r mode from to; do install -D -m $$mode $$from "$(DESTDIR)$$to"; done <<<"$$FILES"

uninstall: ## what install put there
	set -e; while read -r mode from to; do rm -f "$(DESTDIR)$$to"; done <<<"$$FILES"
	for dir in $(DOCDIR)/examples $(DOCDIR); do rmdir "$(DESTDIR)$$dir" 2>/dev/null || true; done

installed: ## the list of what install puts there: mode and path
	@while read -r mode from to; do echo "$$mode $$to"; done <<<"$$FILES"

# Debian packages of what is checked out, in target/deb. On Debian 12 cargo and rustc come from rustup: its own are too old, so -d.
deb: ## Debian packages, into target/deb
	rm -rf target/deb && mkdir -p target/deb/source
	git ls-files -z | tar -c --null -T - | tar -x -C target/deb/source
	cp -a packaging/debian target/deb/source/debian
	ln -s ../../../target target/deb/source/target
	cd target/deb/source && dpkg-buildpackage -b -us -uc -d

# For builds without a network. The second archive goes into the first one's folder, and the Makefile sees that it is there.
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p;T;q' Cargo.toml)
RELEASE := nfsrahead-$(VERSION)
TAR     := tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(shell git log -1 --format=%ct 2>/dev/null) -cz

dist: ## sources and every crate of the last commit, two archives in target/dist
	rm -rf target/dist && mkdir -p target/dist
	git archive --prefix=$(RELEASE)/ HEAD | gzip -n >target/dist/$(RELEASE).tar.gz
	cd target/dist && tar -xzf $(RELEASE).tar.gz && cd $(RELEASE) && \
		{ $(CARGO) vendor --locked vendor >../config.toml 2>../log || { cat ../log; exit 1; }; } && mv ../config.toml vendor/ && \
		$(TAR) -f ../$(RELEASE)-vendor.tar.gz vendor
	rm -r target/dist/$(RELEASE) target/dist/log

check-packages: deb dist ## the packages as they are built, checked, and over nfs-common in a virtual machine
	tests/rpm target/dist
	tests/packages target/deb

fmt: ## formatting, checked
	$(CARGO) fmt --check

lint: ## clippy, warnings are errors
	$(CARGO) clippy --locked --all-targets -- -D warnings

test: helper ## tests on this machine; skips are counted, and errors if CI is set
	$(CARGO) test --locked 2>&1 | tee target/test.log
	@echo "skipped: $$(grep -c '^SKIP' target/test.log)"

shell-lint: ## shellcheck
	shellcheck .ci/run tests/setup $$(find tests -name '*.sh') $$(grep -rlE '^\#!/bin/(ba)?sh' tests --include='[!.]*' --exclude='*.*')

setup: ## Debian packages that check needs (installs them if root)
	tests/setup

check: setup fmt lint shell-lint test check-vm check-packages ## everything: this machine, then real NFS in a virtual machine

# What runs in a guest with systemd.
GUEST_PARTS := --put target/release/nfstuned=/usr/sbin/nfstuned --put target/release/nfstune=/usr/bin/nfstune \
	--put target/nfstuned.service=/usr/lib/systemd/system/nfstuned.service

check-vm: helper tools units tool-static ## real kernels, real NFS, real udev in a virtual machine; KERNEL=newest adds a kernel, TEST=name picks tests
	tests/vm/run --helper $(HELPER) --tool $(TOOL) $(if $(TEST),--test $(TEST))
	$(if $(TEST),,tests/vm/run-os $(GUEST_PARTS) --test boot,tuned)
	$(if $(TEST),,VM_TIMEOUT=1500 tests/vm/run-os --kernel 6.12 $(GUEST_PARTS) --slow-disk 1000000 --test nconnect)
	$(if $(TEST),,tests/vm/run-pair --test local-disk)
	$(if $(TEST),,tests/vm/run-pair --client os $(GUEST_PARTS) --test tuned)

# Not shipped: the small guests have none of its libraries.
TOOL := target/tool/$(HOST)/debug/nfstune

tool-static:
	$(CARGO) rustc --locked --no-default-features --features cli --bin nfstune \
		--target-dir target/tool --target $(HOST) -- -Ctarget-feature=+crt-static -Cstrip=symbols

demo: setup helper ## a real NFS mount gets its readahead from nfs.conf through udev
	tests/vm/run --helper $(HELPER) --kernel 6.12 --test demo

helper-path: ## where the static helper is built
	@echo $(HELPER)

# Everything it mounts is in a namespace of its own, and gone when it ends.
PEER ?= /usr/libexec/nfsrahead

bench: helper tools ## one helper call against nfs-utils' (PEER) at 10 to 50,000 mounts, a minute; QUICK=1: up to 1,000
	$(CARGO) build --locked --example bench
	$(CARGO) build --locked --release --example parser
	@mkdir -p target/bench
	unshare $$(test "$$(id -u)" = 0 || echo --map-root-user) --mount \
		target/debug/examples/bench $(HELPER) $(PEER) target/release/nfstune target/bench $(if $(QUICK),--quick)

# Two at a time: make -j2 fuzz. What a run learns stays in tests/fuzz/corpus, for the next one.
FUZZ_TARGETS := $(basename $(notdir $(wildcard tests/fuzz/targets/*.rs)))
SECONDS ?= 60

fuzz: $(FUZZ_TARGETS:%=fuzz-%) ## every fuzz target for SECONDS=60; takes nightly and cargo-fuzz

fuzz-%: fuzz-build
	@mkdir -p tests/fuzz/corpus/$*
	$(CARGO) +nightly fuzz run --fuzz-dir tests/fuzz $* tests/fuzz/corpus/$* tests/fuzz/seeds/$* \
		$(if $(filter grammar,$*),tests/conf-cases) -- -dict=tests/fuzz/words \
		-max_total_time=$(SECONDS) -timeout=5 -max_len=8192 -print_final_stats=1 -verbosity=0

fuzz-build:
	$(CARGO) +nightly fuzz build --fuzz-dir tests/fuzz

clean: ## what was built
	$(CARGO) clean
