//! Which mounts a sub-section speaks of: `[nfsrahead "/srv/media"]`, `[nfsrahead "filer1:/export"]`, `[nfsrahead "filer1:"]`.

use std::net::IpAddr;

use crate::conf::fstab::trim_slashes;
use crate::kernel::mountinfo::Mount;

/// Where a value comes from, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Fstab,
    MountPoint,
    Pattern,
    Export,
    Server,
    /// The plain section: not about this mount in particular.
    Version,
}

/// The argument of a sub-section, or a line of fstab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// One line of fstab: that very mount.
    Fstab { mount_point: Vec<u8>, source: Vec<u8> },
    /// A mount point and all mounted below it.
    MountPoint(Vec<u8>),
    /// The same with `*`, `?` inside a part and `**` across parts.
    Pattern(Vec<u8>),
    /// An export and all below it.
    Export { server: Vec<u8>, path: Vec<u8> },
    /// A server, by the name or address that was mounted, or by the address it was reached at.
    Server(Vec<u8>),
}

impl Scope {
    /// None: the argument is neither a path, nor an export, nor a server.
    pub fn parse(arg: &[u8]) -> Option<Scope> {
        if arg.first() == Some(&b'/') {
            let path = trim_slashes(arg).to_vec();
            return Some(if is_pattern(&path) {
                Scope::Pattern(path)
            } else {
                Scope::MountPoint(path)
            });
        }
        if let Some(server) = arg.strip_suffix(b":") {
            return (!server.is_empty()).then(|| Scope::Server(server.to_vec()));
        }
        let (server, path) = split_source(arg)?;
        Some(Scope::Export {
            server: server.to_vec(),
            path: trim_slashes(path).to_vec(),
        })
    }

    pub fn kind(&self) -> Kind {
        match self {
            Scope::Fstab { .. } => Kind::Fstab,
            Scope::MountPoint(_) => Kind::MountPoint,
            Scope::Pattern(_) => Kind::Pattern,
            Scope::Export { .. } => Kind::Export,
            Scope::Server(_) => Kind::Server,
        }
    }

    /// Among scopes of one kind that take in the same mount the greater one says more about it: a longer path; of patterns
    /// the one with more parts, then with more characters that are no wildcards.
    pub fn detail(&self) -> (usize, usize) {
        match self {
            Scope::Fstab { .. } | Scope::Server(_) => (0, 0),
            Scope::MountPoint(path) | Scope::Export { path, .. } => (0, trim_root(path).len()),
            Scope::Pattern(path) => (
                parts(path).filter(|part| *part != b"**").count(),
                path.iter().filter(|b| !matches!(b, b'*' | b'?')).count(),
            ),
        }
    }

    /// Does the scope take in this mount? What the kernel did not say about a mount matches nothing.
    pub fn covers(&self, mount: &Mount) -> bool {
        let mount_point = mount.mount_point.as_deref();
        let source = || mount.source.as_deref().and_then(split_source);
        match self {
            Scope::Fstab {
                mount_point: place,
                source,
            } => {
                let same =
                    |ours: &[u8], theirs: Option<&[u8]>| theirs.is_some_and(|t| trim_slashes(ours) == trim_slashes(t));
                same(place, mount_point) && same(source, mount.source.as_deref())
            }
            Scope::MountPoint(path) => mount_point.is_some_and(|at| is_at_or_below(at, path)),
            Scope::Pattern(pattern) => mount_point.is_some_and(|at| matches_at_or_above(pattern, at)),
            Scope::Export { server, path } => source()
                .is_some_and(|(theirs, export)| is_server(server, theirs, mount) && is_at_or_below(export, path)),
            Scope::Server(server) => source().is_some_and(|(theirs, _)| is_server(server, theirs, mount)),
        }
    }

    /// Does it take the source to tell? statmount(2) has it only since Linux 6.13.
    pub fn needs_source(&self) -> bool {
        !matches!(self, Scope::MountPoint(_) | Scope::Pattern(_))
    }
}

/// `server:/path`. IPv6 addresses have colons of their own, so the first ":/" parts the two; without one the export is
/// relative and the first colon does.
pub fn split_source(source: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = source
        .windows(2)
        .position(|pair| pair == b":/")
        .or_else(|| source.iter().position(|b| *b == b':'))?;
    let (server, path) = (&source[..colon], &source[colon + 1..]);
    (!server.is_empty() && !path.is_empty()).then_some((server, path))
}

/// The name as mounted (host names know no case), or an address in any spelling, also that of the connection (`addr=`).
fn is_server(wanted: &[u8], mounted: &[u8], mount: &Mount) -> bool {
    let (wanted, mounted) = (without_brackets(wanted), without_brackets(mounted));
    if wanted.eq_ignore_ascii_case(mounted) {
        return true;
    }
    let Some(address) = address(wanted) else {
        return false;
    };
    [Some(mounted), mount.option("addr")]
        .into_iter()
        .flatten()
        .any(|theirs| self::address(theirs) == Some(address))
}

fn without_brackets(server: &[u8]) -> &[u8] {
    server
        .strip_prefix(b"[")
        .and_then(|s| s.strip_suffix(b"]"))
        .unwrap_or(server)
}

fn address(text: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// "/srv/media" takes in "/srv/media" and "/srv/media/x", not "/srv/media2".
fn is_at_or_below(path: &[u8], top: &[u8]) -> bool {
    match trim_root(path).strip_prefix(trim_root(top)) {
        Some(rest) => rest.is_empty() || rest[0] == b'/',
        None => false,
    }
}

/// A path without trailing slashes; of "/" nothing is left.
fn trim_root(path: &[u8]) -> &[u8] {
    match trim_slashes(path) {
        b"/" => b"",
        path => path,
    }
}

fn is_pattern(path: &[u8]) -> bool {
    path.iter().any(|b| matches!(b, b'*' | b'?'))
}

fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    path.split(|b| *b == b'/').filter(|part| !part.is_empty())
}

/// Does a pattern of one part match it? `*` stands for any number of characters, `?` for one.
pub(super) fn matches_part(pattern: &[u8], part: &[u8]) -> bool {
    wildcard(pattern, part, |b| *b == b'*', |p, b| *p == b'?' || p == b)
}

/// Does the pattern match the path or one of the folders above it?
fn matches_at_or_above(pattern: &[u8], path: &[u8]) -> bool {
    let pattern: Vec<_> = parts(pattern).chain([&b"**"[..]]).collect();
    let path: Vec<_> = parts(path).collect();
    wildcard(
        &pattern,
        &path,
        |part| *part == b"**",
        |pattern, part| matches_part(pattern, part),
    )
}

/// Wildcards over a sequence: an element of the pattern either stands for any number of elements (`is_any`), or for one
/// (`is_one`). After a mismatch only the last "any" takes one element more: an earlier one could only give the later one
/// less to work with. So the time is at most pattern × text, whatever the pattern.
fn wildcard<P, T>(pattern: &[P], text: &[T], is_any: impl Fn(&P) -> bool, is_one: impl Fn(&P, &T) -> bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut last_any = None;
    while t < text.len() {
        if pattern.get(p).is_some_and(&is_any) {
            last_any = Some((p, t));
            p += 1;
        } else if pattern.get(p).is_some_and(|one| is_one(one, &text[t])) {
            p += 1;
            t += 1;
        } else if let Some((any, taken)) = last_any {
            last_any = Some((any, taken + 1));
            p = any + 1;
            t = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(is_any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::bdi::Dev;

    fn mount(at: &str, source: &str, options: &str) -> Mount {
        Mount {
            dev: Dev { major: 0, minor: 5 },
            mount_point: Some(at.into()),
            source: Some(source.into()),
            super_options: options.into(),
            is_type_nfs4: true,
        }
    }

    fn covers(arg: &str, at: &str, source: &str, options: &str) -> bool {
        Scope::parse(arg.as_bytes())
            .expect(arg)
            .covers(&mount(at, source, options))
    }

    #[test]
    fn paths_match_by_whole_parts() {
        for (arg, at, expected) in [
            ("/srv/media", "/srv/media", true),
            ("/srv/media/", "/srv/media/a/b", true),
            ("/srv/media", "/srv/media2", false),
            ("/srv/media", "/srv", false),
            ("/", "/anything", true),
            ("/", "/", true),
            ("/srv/*", "/srv/a", true),
            ("/srv/*", "/srv/a/b", true),
            ("/srv/*", "/srv", false),
            ("/srv/*/x", "/srv/a/b/x", false),
            ("/srv/**/x", "/srv/x", true),
            ("/srv/**/x", "/srv/a/b/x/y", true),
            ("/srv/**/x", "/srv/a/b/xy", false),
            ("/home/u?er*", "/home/user1", true),
            ("/home/u?er*", "/home/uuser", false),
            ("/**", "/a", true),
            ("/a*b*c", "/aXbXXc", true),
            ("/a*b*c", "/aXbXX", false),
        ] {
            assert_eq!(covers(arg, at, "h:/e", ""), expected, "{arg} {at}");
        }
    }

    #[test]
    fn exports_and_servers_match_the_source_or_the_address() {
        for (arg, source, options, expected) in [
            ("filer1:/k8s", "filer1:/k8s", "", true),
            ("filer1:/k8s", "FILER1:/k8s/db/sub", "", true),
            ("filer1:/k8s", "filer1:/k8s2", "", false),
            ("filer1:/", "filer1:/x", "", true),
            ("filer1:", "filer1:/x", "", true),
            ("filer1:", "filer10:/x", "", false),
            ("192.0.2.10:", "nas1:/x", "vers=4.2,addr=192.0.2.10", true),
            ("192.0.2.10:/x", "nas1:/x/y", "vers=4.2,addr=192.0.2.10", true),
            ("192.0.2.1:", "nas1:/x", "vers=4.2,addr=192.0.2.10", false),
            ("2001:db8::1:", "[2001:db8:0::1]:/x", "", true),
            ("[2001:db8::1]:/x", "[2001:db8::1]:/x/y", "", true),
            ("2001:db8::1:/x", "[2001:db8::1]:/x", "", true),
            ("fe80::1%eth0:", "[fe80::1%eth0]:/x", "", true),
            ("win:share", "win:share", "", true),
        ] {
            assert_eq!(covers(arg, "/m", source, options), expected, "{arg} {source}");
        }
        for arg in ["", ":", "filer1", "srv/media", "*"] {
            assert_eq!(Scope::parse(arg.as_bytes()), None, "{arg}");
        }
    }

    #[test]
    fn what_the_kernel_does_not_say_matches_nothing() {
        let mut unknown = mount("/srv/a", "h:/e", "");
        unknown.mount_point = None;
        unknown.source = None;
        for arg in ["/", "/**", "h:", "h:/"] {
            assert!(!Scope::parse(arg.as_bytes()).unwrap().covers(&unknown), "{arg}");
        }
    }

    #[test]
    fn a_hostile_pattern_costs_no_more_than_its_length() {
        let pattern = format!("/{}b", "*a".repeat(2000));
        let path = format!("/{}", "a".repeat(20_000));
        assert!(!matches_at_or_above(pattern.as_bytes(), path.as_bytes()));
    }
}
