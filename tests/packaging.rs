//! What is installed, and the examples that come with it.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What is installed where nobody says otherwise: a file more or less is a decision.
const INSTALLED: &str = "\
0644 usr/lib/systemd/system/nfstuned.service
0644 usr/lib/udev/rules.d/99-nfs.rules
0644 usr/share/bash-completion/completions/nfstune
0644 usr/share/doc/nfsrahead/examples/nfsrahead.conf
0644 usr/share/doc/nfsrahead/examples/nfstuned.conf
0644 usr/share/fish/vendor_completions.d/nfstune.fish
0644 usr/share/man/man1/nfstune.1
0644 usr/share/man/man5/nfsrahead.conf.5
0644 usr/share/man/man8/nfsrahead.8
0644 usr/share/man/man8/nfstuned.8
0644 usr/share/zsh/site-functions/_nfstune
0755 usr/bin/nfstune
0755 usr/libexec/nfsrahead
0755 usr/sbin/nfstuned
";

/// `make` with the programs of this build for those of a release, which nothing here builds; what it makes goes to `build`.
fn make(build: &Path, arguments: &[&str]) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_nfstune")).parent().unwrap();
    let output = Command::new("make")
        .args(["-s", "-o", "helper", "-o", "tools"])
        .arg(format!("BUILD={}", build.display()))
        .arg(format!("PROGRAMS={}", programs.display()))
        .arg(format!("HELPER={}", env!("CARGO_BIN_EXE_nfsrahead")))
        .args(arguments)
        .current_dir(here())
        .env_remove("MAKEFLAGS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// All files below `root` by mode and path, and the modes of all folders.
fn files(root: &Path) -> (String, BTreeSet<u32>) {
    let (mut all, mut folders) = (Vec::new(), BTreeSet::new());
    let mut todo = vec![root.to_owned()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let mode = fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o7777;
            if path.is_dir() {
                folders.insert(mode);
                todo.push(path);
            } else {
                all.push(format!("{mode:04o} {}\n", path.strip_prefix(root).unwrap().display()));
            }
        }
    }
    all.sort();
    (all.concat(), folders)
}

#[test]
fn install_and_uninstall() {
    let (build, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let destination = format!("DESTDIR={}", root.path().display());
    make(build.path(), &["install", &destination]);
    assert_eq!(files(root.path()), (INSTALLED.to_owned(), BTreeSet::from([0o755])));
    let mut listed: Vec<String> = make(build.path(), &["installed"])
        .lines()
        .map(|line| line.replacen(" /", " ", 1) + "\n")
        .collect();
    listed.sort();
    assert_eq!(listed.concat(), INSTALLED);

    // What somebody else has put there stays.
    let foreign = root.path().join("usr/share/man/man8/udevd.8");
    fs::write(&foreign, "").unwrap();
    make(build.path(), &["uninstall", &destination]);
    assert_eq!(files(root.path()).0, "0644 usr/share/man/man8/udevd.8\n");
    assert!(!root.path().join("usr/share/doc/nfsrahead").exists());
}

/// Other paths reach every file that names them, and the last ones said are those that count.
#[test]
fn every_path_is_decided_in_one_place() {
    let (build, root) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let destination = format!("DESTDIR={}", root.path().display());
    make(build.path(), &["rules", "units", "manuals", "NOTIFY=notify"]);
    make(
        build.path(),
        &[
            "install",
            &destination,
            "NOTIFY=notify-reload",
            "PREFIX=/opt/n",
            "SBINDIR=/s",
            "LIBEXECDIR=/l",
            "UDEVDIR=/u",
        ],
    );
    let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
    let rule = read("u/rules.d/99-nfs.rules");
    let unit = read("opt/n/lib/systemd/system/nfstuned.service");
    let page = read("opt/n/share/man/man8/nfsrahead.8");
    assert!(rule.contains("PROGRAM==\"/l/nfsrahead "), "{rule}");
    for line in [
        "Type=notify-reload",
        "ExecStart=/s/nfstuned",
        "ExecStopPost=/opt/n/bin/nfstune restore",
    ] {
        assert!(unit.lines().any(|is| is == line), "{line}: {unit}");
    }
    assert!(!unit.contains("ExecReload"));
    assert!(page.contains("/l/nfsrahead") && page.contains("/u/rules.d/99-nfs.rules"));
    for text in [rule, unit, page] {
        assert!(
            text.split('@')
                .all(|part| part.is_empty() || !part.chars().all(|c| c.is_ascii_uppercase())),
            "{text}"
        );
        assert!(!text.contains("/usr/l") && !text.contains("/usr/s"), "{text}");
    }
    assert!(!root.path().join("usr").exists());
    make(build.path(), &["units", "NOTIFY=notify"]);
    let unit = fs::read_to_string(build.path().join("nfstuned.service")).unwrap();
    assert!(
        unit.contains("\nType=notify\nExecStart=/usr/sbin/nfstuned\nExecReload=kill -HUP $MAINPID\n"),
        "{unit}"
    );
}

/// The shells read them, and they know every verb.
#[test]
fn completions() {
    let help = Command::new(env!("CARGO_BIN_EXE_nfstune"))
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let verbs: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .map_while(|line| line.split_whitespace().next())
        .collect();
    assert!(verbs.len() > 10, "{help}");
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = Command::new(env!("CARGO_BIN_EXE_nfstune"))
            .args(["completions", shell])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        for verb in &verbs {
            assert!(text.contains(verb), "{shell}: {verb}");
        }
        let file = dir.path().join(shell);
        fs::write(&file, text).unwrap();
        match Command::new(shell).arg("-n").arg(&file).output() {
            Ok(output) => assert!(
                output.status.success() && output.stderr.is_empty(),
                "{shell}: {output:?}"
            ),
            Err(_) => common::skip(&format!("{shell} is not installed")),
        }
    }
}

/// As systemd reads it: no line that it does not know, and not more exposed than it has to be.
#[test]
fn the_unit() {
    let build = tempfile::tempdir().unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_nfstuned")).parent().unwrap().display();
    let unit = build.path().join("nfstuned.service");
    // Known to every systemd: what is here may be older than 253.
    make(
        build.path(),
        &[
            "units",
            "NOTIFY=notify",
            &format!("SBINDIR={programs}"),
            &format!("BINDIR={programs}"),
        ],
    );
    let text = fs::read_to_string(&unit).unwrap();
    // Each of them hides mounts, the kernel's files of NFS, or takes uid 0 away.
    for never in [
        "ProtectHome",
        "PrivateNetwork",
        "PrivateUsers",
        "ProtectProc",
        "ProcSubset",
        "DynamicUser",
        "PrivateTmp",
        "PrivateMounts",
    ] {
        assert!(!text.contains(&format!("\n{never}=")), "{never}");
    }
    assert!(text.contains("\nProtectSystem=full\n"));
    // Nobody is asked where no root and no systemd runs.
    for arguments in [
        &["verify", "--man=no"][..],
        // Tenths: an exposure of 2.5 at most.
        &["security", "--offline=yes", "--no-pager", "--threshold=25"][..],
    ] {
        match Command::new("systemd-analyze").args(arguments).arg(&unit).output() {
            Ok(output) => {
                let said = String::from_utf8(output.stderr).unwrap();
                let about_us = said.lines().filter(|line| line.contains("nfstuned")).count();
                assert!(output.status.success() && about_us == 0, "{arguments:?}: {said}");
            }
            Err(_) => common::skip("systemd-analyze is not installed"),
        }
    }
}

fn examples() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir(here().join("conf/nfs.conf.d"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    all.sort();
    assert_eq!(all.len(), 2);
    all
}

/// As it comes an example changes nothing and is right; with all its keys it is right too, and it has them all.
#[test]
fn examples_are_right_with_and_without_their_marks() {
    let page = fs::read_to_string(here().join("man/nfsrahead.conf.5")).unwrap();
    let documented: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix(".It Cm ").or_else(|| line.strip_prefix(".It Ic ")))
        .filter(|key| {
            key.chars()
                .all(|c| c.is_ascii_lowercase() || c == '-' || c.is_ascii_digit())
        })
        .collect();
    let mut seen = BTreeSet::new();
    for example in examples() {
        let text = fs::read_to_string(&example).unwrap();
        let unmarked: String = text
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if rest.starts_with('[') || rest.contains(" = ") && !rest.starts_with(' ') => {
                    format!("{rest}\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        seen.extend(
            unmarked
                .lines()
                .filter_map(|line| Some(line.split_once(" = ")?.0.to_owned()))
                .filter(|key| !key.starts_with('#')),
        );
        for text in [&text, &unmarked] {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("etc")).unwrap();
            fs::create_dir_all(dir.path().join("proc/self")).unwrap();
            let mounts = [
                ("/srv/media", "filer1:/export/x", 50),
                ("/db", "filer1:/export/db", 51),
                ("/s", "filer1:/export/scratch", 52),
            ];
            let table: String = mounts
                .iter()
                .map(|(at, source, minor)| {
                    format!("3{minor} 1 0:{minor} / {at} rw - nfs4 {source} rw,vers=4.2,rsize=1048576\n")
                })
                .collect();
            fs::write(dir.path().join("proc/self/mountinfo"), table).unwrap();
            fs::write(dir.path().join("etc/nfs.conf"), text).unwrap();
            let output = Command::new(env!("CARGO_BIN_EXE_nfstune"))
                .arg("--root")
                .arg(dir.path())
                .args(["config", "check"])
                .output()
                .unwrap();
            let found = String::from_utf8(output.stdout).unwrap();
            // That nfs-utils reads rules as other numbers is what the man page says about them.
            let wrong: Vec<&str> = found
                .lines()
                .filter(|line| !line.contains("[nfs-utils-differs]"))
                .collect();
            assert!(wrong.is_empty(), "{}: {wrong:?}", example.display());
        }
    }
    let seen: BTreeSet<&str> = seen.iter().map(String::as_str).collect();
    assert!(documented.is_superset(&seen), "{seen:?} {documented:?}");
    for key in [
        "nfs",
        "nfs4",
        "default",
        "wait",
        "namespaces",
        "debug",
        "interval",
        "apply",
        "drain-target",
        "settle",
        "dirty-limit",
    ] {
        assert!(seen.contains(key), "{key} is in no example");
    }
}

fn packaging(file: &str) -> String {
    fs::read_to_string(here().join("packaging").join(file)).unwrap()
}

/// Maintainer scripts and recipes are at least shell that can be read.
#[test]
fn scripts_can_be_read() {
    let mut scripts: Vec<PathBuf> = fs::read_dir(here().join("packaging/debian"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension().is_some_and(|ending| {
                ["preinst", "postinst", "prerm", "postrm"]
                    .iter()
                    .any(|known| ending == *known)
            })
        })
        .collect();
    assert!(scripts.len() >= 5);
    scripts.push(here().join("packaging/arch/PKGBUILD"));
    scripts.push(here().join("packaging/alpine/APKBUILD"));
    for script in scripts {
        let status = Command::new("bash").arg("-n").arg(&script).status().unwrap();
        assert!(status.success(), "{}", script.display());
    }
}

/// Nix's is read by its own reader. Neither is built here.
#[test]
fn nix_and_container_can_be_read() {
    let nix = Command::new("nix-instantiate")
        .args(["--parse", "packaging/nix/default.nix"])
        .current_dir(here())
        .output();
    match nix {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(_) => common::skip("nix-instantiate is not installed"),
    }
    for line in packaging("container/Containerfile").lines() {
        let word = line.split(' ').next().unwrap();
        assert!(
            ["", "#", "FROM", "RUN", "ADD", "COPY", "WORKDIR", "ENTRYPOINT"].contains(&word),
            "{line}"
        );
    }
}

/// One version everywhere.
#[test]
fn versions_agree() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, line) in [
        ("debian/changelog", format!("nfsrahead ({version}-1) ")),
        ("rpm/nfsrahead.spec", format!("Version:        {version}\n")),
        ("arch/PKGBUILD", format!("\npkgver={version}\n")),
        ("alpine/APKBUILD", format!("\npkgver={version}\n")),
        ("nix/default.nix", format!("version = \"{version}\";")),
        ("container/daemonset.yaml", format!("image: nfstuned:{version}\n")),
        ("container/Containerfile", format!("-t nfstuned:{version} ")),
    ] {
        assert!(packaging(file).contains(&line), "{file}: {line}");
    }
    for program in [
        env!("CARGO_BIN_EXE_nfsrahead"),
        env!("CARGO_BIN_EXE_nfstuned"),
        env!("CARGO_BIN_EXE_nfstune"),
    ] {
        let output = Command::new(program).arg("-V").output().unwrap();
        let name = Path::new(program).file_name().unwrap().to_str().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{name} {version}\n"));
    }
}

/// Debian 13's compiler is the one that Cargo.toml names, and the crates of Cargo.lock may not ask for a newer one.
#[test]
fn every_crate_builds_with_the_rust_that_is_named() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .current_dir(here())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let version = |text: &str| -> Vec<u32> { text.split('.').take(2).map(|part| part.parse().unwrap()).collect() };
    let ours = version(env!("CARGO_PKG_RUST_VERSION"));
    assert_eq!(ours.len(), 2);
    for package in all["packages"].as_array().unwrap() {
        if let Some(theirs) = package["rust_version"].as_str() {
            assert!(version(theirs) <= ours, "{}: {theirs}", package["name"]);
        }
    }
}

/// `script`, bash with errors as ends, in the project's folder: what it prints. make is that of `make()`, with folders below `$work`.
fn recipe(work: &Path, script: &str) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_nfstune")).parent().unwrap();
    let head = "set -euo pipefail\n\
        make() { command make -s -o helper -o tools BUILD=\"$work/build\" PROGRAMS=\"$programs\" HELPER=\"$helper\" \"$@\"; }\n";
    let output = Command::new("bash")
        .args(["-c", &format!("{head}{script}")])
        .current_dir(here())
        .env("work", work)
        .env("programs", programs)
        .env("helper", env!("CARGO_BIN_EXE_nfsrahead"))
        .env_remove("MAKEFLAGS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// `INSTALLED` in other places.
fn installed_with(places: &[(&str, &str)]) -> String {
    let mut lines: Vec<String> = INSTALLED.lines().map(|line| format!("{line}\n")).collect();
    for line in &mut lines {
        for (from, to) in places {
            *line = line.replace(from, to);
        }
    }
    lines.sort();
    lines.concat()
}

/// Arch's recipe, run as makepkg does: its two packages have every file, each once.
#[test]
fn packages_of_arch() {
    let work = tempfile::tempdir().unwrap();
    recipe(
        work.path(),
        r#"
        source packaging/arch/PKGBUILD
        srcdir=$work/src
        mkdir "$srcdir"
        ln -s "$PWD" "$srcdir/$pkgbase-$pkgver"
        (cd "$srcdir" && build)
        for pkgname in "${pkgname[@]}"; do
            pkgdir=$work/$pkgname
            mkdir "$pkgdir"
            (cd "$srcdir" && "package_$pkgname")
        done
        mkdir "$work/all"
        cp -a "$work"/nfsrahead/. "$work"/nfstuned/. "$work/all"
        "#,
    );
    let both = files(&work.path().join("all")).0;
    let places = [
        (" usr/libexec/", " usr/lib/nfsrahead/"),
        (" usr/lib/udev/", " etc/udev/"),
        (" usr/sbin/", " usr/bin/"),
    ];
    assert_eq!(both, installed_with(&places));
    let daemon = files(&work.path().join("nfstuned")).0;
    assert_eq!(daemon.lines().count(), 9, "{daemon}");
}

/// Alpine's, as abuild does: what its subpackages take, and what stays.
#[test]
fn packages_of_alpine() {
    let work = tempfile::tempdir().unwrap();
    recipe(
        work.path(),
        r#"
        source packaging/alpine/APKBUILD
        amove() {
            local path
            for path; do
                mkdir -p "$work/$name/$(dirname "$path")"
                mv "$pkgdir/$path" "$work/$name/$path"
            done
        }
        pkgdir=$work/rest
        build
        package
        for subpackage in $subpackages; do
            name=${subpackage%%:*}
            [ "$name" = nfsrahead-doc ] || "${subpackage#*:}"
        done
        "#,
    );
    let has = |name: &str| files(&work.path().join(name)).0;
    assert_eq!(has("nfstuned"), "0755 usr/bin/nfstune\n0755 usr/sbin/nfstuned\n");
    assert_eq!(
        has("nfsrahead-bash-completion"),
        "0644 usr/share/bash-completion/completions/nfstune\n"
    );
    assert_eq!(
        has("nfsrahead-zsh-completion"),
        "0644 usr/share/zsh/site-functions/_nfstune\n"
    );
    assert_eq!(
        has("nfsrahead-fish-completion"),
        "0644 usr/share/fish/vendor_completions.d/nfstune.fish\n"
    );
    // Man pages and examples go to nfsrahead-doc by themselves.
    let rest = has("rest");
    let rest: Vec<&str> = rest.lines().filter(|line| !line.contains(" usr/share/")).collect();
    assert_eq!(
        rest,
        ["0644 usr/lib/udev/rules.d/99-nfs.rules", "0755 usr/libexec/nfsrahead"]
    );
}

/// The DaemonSet has only fields that Kubernetes knows, and no more of its node than it reads.
#[test]
fn the_daemonset() {
    let output = match Command::new("tests/daemonset")
        .arg("packaging/container/daemonset.yaml")
        .current_dir(here())
        .output()
    {
        Ok(output) if !output.stderr.ends_with(b"No module named 'kubernetes'\n") => output,
        _ => return common::skip("python3-kubernetes is not installed"),
    };
    assert!(output.status.success(), "{output:?}");
    let mounts = String::from_utf8(output.stdout).unwrap();
    let written: Vec<&str> = mounts.lines().filter(|line| !line.starts_with("ro ")).collect();
    assert_eq!(
        written,
        [
            "rw /run/nfstuned /host/run/nfstuned",
            "rw /var/lib/nfstuned /host/var/lib/nfstuned"
        ]
    );
    for all in [" / ", " /proc ", " /etc ", " /run ", " /var "] {
        assert!(!mounts.contains(all), "{all}: {mounts}");
    }
    let text = packaging("container/daemonset.yaml");
    for least in [
        "allowPrivilegeEscalation: false",
        "readOnlyRootFilesystem: true",
        "capabilities: {drop: [ALL]}",
        "seccompProfile: {type: RuntimeDefault}",
        "automountServiceAccountToken: false",
    ] {
        assert!(text.contains(least), "{least}");
    }
    for never in ["hostPID", "hostNetwork", "hostIPC", "privileged", "add:"] {
        assert!(!text.contains(never), "{never}");
    }
}
