//! /proc/self/mountstats: every shape that kernels have printed, every number of it, and whose number it is.

#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::io::BufReader;
use std::path::Path;

use nfsrahead::client::{clients, join, Mounted};
use nfsrahead::kernel::mountinfo;
use nfsrahead::kernel::mountstats::{each, parse, Bytes, Mount, Op, Proto, Transport};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

mod common;

fn data(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mountstats");
    std::fs::read(folder.join(name)).unwrap()
}

fn mounts(text: impl AsRef<[u8]>) -> Vec<Mount> {
    parse(text.as_ref()).unwrap()
}

fn mount(text: impl AsRef<[u8]>) -> Mount {
    let [mount] = <[Mount; 1]>::try_from(mounts(text)).unwrap();
    mount
}

/// Each client by its text, with its connections; from mountstats alone.
fn clients_of(mounts: &[Mount]) -> Vec<(String, Vec<Transport>)> {
    let clients = clients(&join(mounts, &[]));
    let shown = clients.iter().map(|(key, all)| (key.to_string(), all.to_vec()));
    shown.collect()
}

fn ops(mount: &Mount, name: &str) -> u64 {
    mount.op(name).unwrap().ops
}

fn sum(transports: &[Transport], of: fn(&Transport) -> u64) -> u64 {
    transports.iter().map(of).sum()
}

/// Field case: parsers kept the last xprt line only, and told percentages four times too high.
#[test]
fn four_connections_of_one_mount() {
    let mount = mount(data("several-xprt"));
    let all = &mount.transports;
    assert_eq!(all.len(), 4);
    assert_eq!(sum(all, |t| t.sends), 100_000);
    assert_eq!(sum(all, |t| t.receives), 99_999);
    assert_eq!(sum(all, |t| t.bad_xids), 1);
    assert_eq!(sum(all, |t| t.backlog_sum), 40);
    assert_eq!(sum(all, |t| t.in_flight_sum), 200_000);
    let percent = |name| 100 * ops(&mount, name) / sum(all, |t| t.sends);
    assert_eq!(["READ", "GETATTR", "LOOKUP"].map(percent), [60, 30, 10]);
    assert_eq!(mount.total_ops(), 100_000);
    let each = |of: fn(&Transport) -> Option<u64>| all.iter().map(|t| of(t).unwrap()).collect::<Vec<_>>();
    assert_eq!(each(|t| t.slots_max), [16, 16, 32, 16]);
    assert_eq!(each(|t| t.idle_s), [0, 3, 9, 200]);
    assert_eq!(each(|t| t.source_port), [700, 701, 702, 703]);
    assert_eq!(mount.op("LOOKUP").unwrap().errors, Some(12));
    assert_eq!(mount.age_s, Some(3600));
    assert_eq!(mount.option("nconnect"), Some(&b"4"[..]));
}

/// Field case: a server's name for itself had a newline in it.
#[test]
fn a_field_that_runs_over_two_lines() {
    let mounts = mounts(data("multiline-impl-id"));
    let seen: Vec<_> = mounts.iter().map(|m| (&*m.mount_point, ops(m, "READ"))).collect();
    assert_eq!(seen, [(&b"/tank"[..], 11), (b"/a", 4)]);
    let name = b"NAS-OS 13.0-STABLE #0 abc123(HEAD): Tue Jan 3 08:00:00 UTC 2023";
    assert_eq!(
        (&*mounts[0].implementation, &*mounts[1].implementation),
        (&name[..], &b""[..])
    );
    assert_eq!(mounts[0].transports.len(), 1);
}

/// Field case: summed over the mounts, shared connections counted twice.
#[test]
fn two_mounts_of_one_client() {
    let mounts = mounts(data("shared-transport-not-summed-twice"));
    let total: u64 = mounts.iter().map(Mount::total_ops).sum();
    assert_eq!(mounts.iter().map(Mount::total_ops).collect::<Vec<_>>(), [6000, 4000]);
    let [(name, transports)] = &clients_of(&mounts)[..] else {
        panic!()
    };
    assert_eq!(name, "nas1.example,vers=4.2,proto=tcp");
    assert_eq!(transports.len(), 2);
    assert_eq!(sum(transports, |t| t.sends), total);
}

/// Read with the least means from the text: what the parser must agree with.
fn columns<'a>(text: &'a str, first: &str) -> Vec<Vec<&'a str>> {
    let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    words.filter(|words| words.first() == Some(&first)).collect()
}

#[test]
fn every_kernel() {
    for kernel in ["6.1", "6.12", "7.2"] {
        for (file, points) in [
            (
                "",
                &["/mnt/v3", "/mnt/v42", "/mnt/v42n4", "/mnt/sp ace", "/mnt/bind"][..],
            ),
            (".nconnect4", &["/mnt/v3", "/mnt/v42n4"]),
        ] {
            let name = format!("{kernel}/mountstats{file}");
            let text = String::from_utf8(data(&name)).unwrap();
            let mounts = mounts(&text);
            let seen: Vec<_> = mounts
                .iter()
                .map(|m| std::str::from_utf8(&m.mount_point).unwrap())
                .collect();
            assert_eq!(seen, points, "{name}");

            let transports: Vec<_> = mounts.iter().flat_map(|m| &m.transports).collect();
            let lines = columns(&text, "xprt:");
            assert_eq!(transports.len(), lines.len());
            for (t, line) in transports.iter().zip(lines) {
                assert_eq!(line, shown_tcp(t).split(' ').collect::<Vec<_>>(), "{name}");
            }
            for op in ["NULL", "READ", "WRITE", "COMMIT", "GETATTR", "LOOKUP"] {
                let found: Vec<_> = mounts.iter().filter_map(|m| m.op(op)).collect();
                let lines = columns(&text, &format!("{op}:"));
                assert_eq!(found.len(), mounts.len());
                for (op, line) in found.iter().zip(lines) {
                    assert_eq!(line, shown_op(op).split(' ').collect::<Vec<_>>(), "{name}");
                }
            }
            // A name and nine numbers; the server's name may have ten words, but no numbers.
            let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let lines = words.filter(|words| words.len() == 10 && words[1].parse::<u64>().is_ok());
            assert_eq!(
                mounts.iter().map(|m| m.ops.len()).sum::<usize>(),
                lines.count(),
                "{name}"
            );
            for (mount, bytes) in mounts.iter().zip(columns(&text, "bytes:")) {
                let bytes: Vec<u64> = bytes[1..].iter().map(|n| n.parse().unwrap()).collect();
                assert_eq!(mount.bytes.unwrap().server_written_bytes, bytes[5]);
                assert_eq!(mount.bytes.unwrap().read_pages, bytes[6]);
            }
            for (mount, events) in mounts.iter().zip(columns(&text, "events:")) {
                assert_eq!(mount.readahead_calls, Some(events[10].parse().unwrap()));
            }
        }
    }
}

fn shown_tcp(t: &Transport) -> String {
    assert_eq!(t.proto, Proto::Tcp);
    let head = [t.source_port, Some(t.binds), t.connects, t.connect_s, t.idle_s].map(Option::unwrap);
    let middle = [t.sends, t.receives, t.bad_xids, t.in_flight_sum, t.backlog_sum];
    let tail = [t.slots_max, t.sending_sum, t.pending_sum].map(Option::unwrap);
    let all = head.iter().chain(&middle).chain(&tail);
    format!("xprt: tcp{}", all.map(|n| format!(" {n}")).collect::<String>())
}

fn shown_op(op: &Op) -> String {
    let name = std::str::from_utf8(op.name()).unwrap();
    let n = [op.ops, op.transmissions, op.timeouts, op.sent_bytes, op.received_bytes];
    let ms = [op.queue_ms, op.rtt_ms, op.execution_ms];
    let all = n.iter().chain(&ms).chain(&op.errors);
    format!("{name}:{}", all.map(|n| format!(" {n}")).collect::<String>())
}

/// The first of two addresses of one server made the client; the kernel found out, and says so in mountinfo.
#[test]
fn mountinfo_tells_which_addresses_are_one_server() {
    for kernel in ["6.1", "6.12", "7.2"] {
        let stats = mounts(data(&format!("{kernel}/mountstats")));
        let table = mountinfo::parse(&*data(&format!("{kernel}/mountinfo")), None).unwrap();
        let joined = join(&stats, &table);
        let devices: Vec<_> = joined.iter().map(|m| m.mount.unwrap().dev.minor).collect();
        assert_eq!(
            devices[1], devices[4],
            "the bind mount has the device of its superblock"
        );
        let groups: Vec<_> = clients(&joined)
            .into_iter()
            .map(|(key, t)| (key.to_string(), t.len()))
            .collect();
        let expected = ["3", "4.1", "4.2"].map(|v| (format!("127.0.0.1,vers={v},proto=tcp"), 1));
        assert_eq!(groups, expected);

        let stats = mounts(data(&format!("{kernel}/mountstats.nconnect4")));
        let table = mountinfo::parse(&*data(&format!("{kernel}/mountinfo.nconnect4")), None).unwrap();
        let numbers: Vec<_> = clients(&join(&stats, &table)).values().map(|t| t.len()).collect();
        assert_eq!(numbers, [1, 4]);
    }
}

/// A mount of `text` between its first line and its operations.
fn with_head(text: &str) -> String {
    format!("device h:/x mounted on /x with fstype nfs statvers=1.0\n{text}")
}

#[test]
fn the_shapes_of_transports() {
    let text = "\txprt:\ttcp 1 2 3 4 5 6 7 8 9 10 11 12 13\n\
        \txprt:\tudp 1 2 6 7 8 9 10 11 12 13\n\
        \txprt:\tlocal 2 3 4 5 6 7 8 9 10 11 12 13\n\
        \txprt:\trdma 0 2 3 4 5 6 7 8 9 10 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37\n\
        \txprt:\ttcp 1 2 3 4 5 6 7 8 9 10\n\
        \txprt:\tudp 1 2 6 7 8 9 10\n";
    let newest = Transport {
        proto: Proto::Tcp,
        source_port: Some(1),
        binds: 2,
        connects: Some(3),
        connect_s: Some(4),
        idle_s: Some(5),
        sends: 6,
        receives: 7,
        bad_xids: 8,
        in_flight_sum: 9,
        backlog_sum: 10,
        slots_max: Some(11),
        sending_sum: Some(12),
        pending_sum: Some(13),
    };
    let old = |t: Transport| Transport {
        slots_max: None,
        sending_sum: None,
        pending_sum: None,
        ..t
    };
    let udp = Transport {
        proto: Proto::Udp,
        connects: None,
        connect_s: None,
        idle_s: None,
        ..newest
    };
    let local = Transport {
        proto: Proto::Local,
        source_port: None,
        ..newest
    };
    let rdma = Transport {
        proto: Proto::Rdma,
        source_port: Some(0),
        ..old(newest)
    };
    let expected = [newest, udp, local, rdma, old(newest), old(udp)];
    assert_eq!(mount(with_head(text)).transports, expected);
}

#[test]
fn eight_columns_before_linux_5_3() {
    let text = "\topts:\trw,vers=3,rsize=32768,proto=udp\n\
        \tage:\t18446744073709551615\n\
        \tcaps:\tcaps=0xf,wtmult=4096\n\
        \tsec:\tflavor=1,pseudoflavor=1\n\
        \tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 \n\
        \tbytes:\t1 2 3 4 5 6 7 8 \n\
        \tRPC iostats version: 1.0  p/v: 100003/3 (nfs)\n\
        \txprt:\tudp 1 2 6 7 8 9 10\n\
        \tper-op statistics\n\
        \t        NULL: 0 0 0 0 0 0 0 0\n\
        \t        READ: 18446744073709551615 2 3 4 5 6 7 8\n\
        \t          21: 1 2 3 4 5 6 7 8 9 10\n\n";
    let mount = mount(with_head(text));
    assert_eq!(mount.age_s, Some(u64::MAX));
    assert_eq!(mount.readahead_calls, Some(10));
    let bytes = Bytes {
        cached_read_bytes: 1,
        cached_written_bytes: 2,
        direct_read_bytes: 3,
        direct_written_bytes: 4,
        server_read_bytes: 5,
        server_written_bytes: 6,
        read_pages: 7,
        written_pages: 8,
    };
    assert_eq!(mount.bytes, Some(bytes));
    let shown: Vec<_> = mount.ops.iter().map(shown_op).collect();
    let read = "READ: 18446744073709551615 2 3 4 5 6 7 8";
    assert_eq!(shown, ["NULL: 0 0 0 0 0 0 0 0", read, "21: 1 2 3 4 5 6 7 8 9"]);
    assert_eq!(mount.op("READ").unwrap().errors, None);
    assert_eq!(mount.op("READ").unwrap().retransmissions(), 0);
    assert_eq!(mount.op("21").unwrap().retransmissions(), 1);
    assert_eq!(mount.total_ops(), u64::MAX);
}

/// A line that is cut, spoiled or unknown loses itself, not its neighbours.
#[test]
fn what_is_not_understood_is_passed_over() {
    let good = "\txprt:\tudp 1 2 6 7 8 9 10\n\tage:\t7\n\tper-op statistics\n\t READ: 1 2 3 4 5 6 7 8 9\n";
    let expected = mount(with_head(good));
    assert_eq!((expected.transports.len(), expected.ops.len()), (1, 1));
    let long = format!("\txprt:\ttcp {}\n", "7".repeat(200_000));
    let name = "X".repeat(32);
    for bad in [
        "\txprt:\ttcp 1 2 3 4 5 6 7 8 9\n",
        "\txprt:\ttcp 1 2 3 4 5 6 7 8 9 -1\n",
        "\txprt:\ttcp 1 2 3 4 5 6 7 8 9 18446744073709551616\n",
        "\txprt:\tquic 1 2 3 4 5 6 7 8 9 10\n",
        "\txprt:\ttcp\n",
        "\txprt:\n",
        "xprt: udp 1 2 6 7 8 9 10\n",
        "\n",
        "\t\n",
        ":\n",
        "\t:\n",
        "\tevents:\t1 2 3\n",
        "\tbytes:\t1 2 3 4 5 6 7 x\n",
        "\tfuture:\t1 2 3\n",
        "\timpl_id:\tname='',domain='',date='0,0'\n",
        "\timpl_id:\tname='',domain='',date='0,0',more=1\n\tcaps:\t0\n",
        "\timpl_id:\tname='',domain='a\nb',date='0,0'\n",
        "\0\u{1b}\u{ff}\n",
        "\t        READ: 1 2 3 4 5 6 7\n",
        "\t        READ: 1 2 3 4 5 6 7 x\n",
        "\t        READ: 1 2 3 4 5 6 7 8x\n",
        "\tREAD 1 2 3 4 5 6 7 8\n",
        &format!("\t{name}: 1 2 3 4 5 6 7 8\n"),
        &long,
    ] {
        let lines: Vec<_> = good.split_inclusive('\n').collect();
        for at in 0..=lines.len() {
            let text = with_head(&[&lines[..at].concat(), bad, &lines[at..].concat()].concat());
            assert_eq!(mount(&text), expected, "{:?} before line {at}", bad.get(..60));
        }
    }
    for head in [
        "device h:/y mounted on /y with fstype nfsd\n",
        "device h:/y mounted on /y with fstype nfs5 statvers=1.1\n",
        "device h:/y mounted on /y with\n",
        "device h:/y\n",
        "device \n",
        "no device mounted on /y with fstype nfs\n",
    ] {
        let text = [head, good, &with_head(good), head, good].concat();
        assert_eq!(mount(&text), expected, "{head}");
    }
    let without_newline = with_head(good.trim_end());
    assert_eq!(mount(&without_newline), expected);
}

/// What a server calls itself cannot add figures or mounts, unless it ends its own field first.
#[test]
fn a_server_cannot_forge_lines() {
    let forged = "device evil:/ mounted on / with fstype nfs4 statvers=1.1\n\txprt:\ttcp 1 1 1 1 1 1 1 1 1 1\n\
        \tper-op statistics\n\t        READ: 9 9 9 9 9 9 9 9 9\n";
    let last = "device evil:/ mounted on / with fstype nfs4 ";
    for rest in [forged.to_owned(), forged.repeat(9), last.to_owned()] {
        let text = format!("\timpl_id:\tname='x\n{rest}',domain='',date='0,0'\n\tcaps:\t0\n\tage:\t3\n");
        assert_eq!(mount(with_head(&text)).age_s, Some(3));
        assert_eq!(mount(with_head(&text)).transports, []);
    }
    // A field without an end takes no more than it can have, so that the next mount is read.
    let endless = with_head("\timpl_id:\tname='\n") + &"x\n".repeat(2000) + &with_head("\tage:\t5\n");
    let ages: Vec<_> = mounts(endless).iter().map(|m| m.age_s).collect();
    assert_eq!(ages, [None, Some(5)]);
}

#[test]
fn hostile_numbers_of_lines() {
    let text = "\txprt:\tudp 1 2 6 7 8 9 10\n".repeat(10_000);
    let text = with_head(&text) + "\tper-op statistics\n" + &"\t READ: 1 1 1 1 1 1 1 1\n".repeat(10_000);
    let mount = mount(text);
    assert_eq!((mount.transports.len(), mount.ops.len()), (256, 256));
}

#[test]
fn paths_are_bytes() {
    let text = b"device h:/a\\040b mounted on /mnt/bad\xffutf\\134\\012 with fstype nfs4 statvers=1.1\n";
    let mount = mount(text);
    assert_eq!(mount.source, b"h:/a b");
    assert_eq!(mount.mount_point, b"/mnt/bad\xffutf\\\n");
    assert!(mount.is_type_nfs4);
}

#[test]
fn clients_are_told_apart_by_what_the_kernel_matches() {
    let of = |options: &str| format!("device h:/x mounted on /x with fstype nfs4 statvers=1.1\n\topts:\t{options}\n");
    let plain = "rw,vers=4.2,proto=tcp,sec=sys";
    let names = |other: &str| {
        let text = of(plain) + &of(other);
        clients_of(&mounts(text))
            .into_iter()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
    };
    for same in [
        "rw,vers=4.2,proto=tcp,sec=krb5p",
        "ro,vers=4.2,rsize=4096,proto=tcp,nconnect=8,sec=sys",
    ] {
        assert_eq!(names(same), ["h,vers=4.2,proto=tcp"], "{same}");
    }
    for (other, name) in [
        ("vers=4.1,proto=tcp", "h,vers=4.1,proto=tcp"),
        ("vers=4.2,proto=tcp6", "h,vers=4.2,proto=tcp6"),
        ("vers=4.2,proto=rdma,port=20049", "h,vers=4.2,proto=rdma,port=20049"),
        ("vers=4.2,proto=tcp,xprtsec=tls", "h,vers=4.2,proto=tcp,xprtsec=tls"),
        ("proto=tcp", "h,vers=4,proto=tcp"),
    ] {
        let names = names(other);
        assert!(names.len() == 2 && names.iter().any(|n| n == name), "{names:?}");
    }
}

#[test]
fn mounts_upon_each_other_keep_their_devices() {
    let stats = mounts(with_head("\tage:\t1\n").repeat(3));
    let line = |minor| format!("1 2 0:{minor} / /x rw - nfs h:/x rw,addr=192.0.2.1\n");
    let table = mountinfo::parse((line(5) + &line(6)).as_bytes(), None).unwrap();
    let devices: Vec<_> = join(&stats, &table)
        .iter()
        .map(|m| m.mount.map(|m| m.dev.minor))
        .collect();
    assert_eq!(devices, [Some(5), Some(6), None]);
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0..100u64]
}

/// A mount as a kernel would print it, and what it says.
fn printed() -> impl Strategy<Value = (String, Vec<Vec<u64>>, Vec<Vec<u64>>)> {
    let transport = vec(number(), 13);
    let op = prop_oneof![vec(number(), 8), vec(number(), 9)];
    let all = (0..5u8, vec(transport, 0..5), vec(op, 0..9));
    all.prop_map(|(place, transports, ops)| {
        let mut text = format!("device h{place}:/x mounted on /{place} with fstype nfs4 statvers=1.1\n");
        text += "\topts:\trw,vers=4.2,proto=tcp\n\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n";
        let line = |numbers: &[u64]| numbers.iter().map(|n| format!(" {n}")).collect::<String>() + "\n";
        text.extend(transports.iter().map(|t| format!("\txprt:\ttcp{}", line(t))));
        text += "\tper-op statistics\n";
        text.extend(ops.iter().enumerate().map(|(i, op)| format!("\t{i:>12}:{}", line(op))));
        (text + "\n", transports, ops)
    })
}

fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"device h:/x mounted on /x with fstype nfs4 statvers=1.1\n",
        b"\txprt:\t",
        b"tcp",
        b"\tper-op statistics\n",
        b"\timpl_id:\tname='",
        b"\n",
        b"\t",
        b" 7",
        b" READ:",
        b":",
        b"18446744073709551616",
    ];
    let piece = prop_oneof![8 => select(pieces).prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 0..9)];
    vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn counters_survive(printed in vec(printed(), 0..5)) {
        let text: String = printed.iter().map(|(text, ..)| &**text).collect();
        let mounts = mounts(text);
        prop_assert_eq!(mounts.len(), printed.len());
        for (mount, (_, transports, ops)) in mounts.iter().zip(&printed) {
            let line = |numbers: &Vec<u64>| numbers.iter().map(|n| format!(" {n}")).collect::<String>();
            let shown: Vec<_> = mount.transports.iter().map(shown_tcp).collect();
            let expected: Vec<_> = transports.iter().map(|t| format!("xprt: tcp{}", line(t))).collect();
            prop_assert_eq!(shown, expected);
            let shown: Vec<_> = mount.ops.iter().map(shown_op).collect();
            let expected: Vec<_> = ops.iter().enumerate().map(|(i, op)| format!("{i}:{}", line(op))).collect();
            prop_assert_eq!(shown, expected);
        }
    }

    /// Nor is the size of the reader's buffer, and what is not understood between the mounts.
    #[test]
    fn the_order_of_mounts_is_irrelevant(printed in vec(printed(), 0..5), junk in hostile(), size in 1..99usize) {
        let junk: Vec<u8> = [b"device x\n", &junk[..], b"\n"].concat().iter().map(|b| if *b == b'd' { b'D' } else { *b }).collect();
        let texts: Vec<Vec<u8>> = printed.iter().map(|(text, ..)| [text.as_bytes(), b"no device mounted on /\n", &junk].concat()).collect();
        let forth = mounts(texts.concat());
        prop_assert_eq!(forth.len(), printed.len());
        let backward: Vec<u8> = texts.iter().rev().flatten().copied().collect();
        let mut back = Vec::new();
        each(BufReader::with_capacity(size, &*backward), |mount| back.push(mount.clone())).unwrap();
        prop_assert_eq!(clients_of(&forth), clients_of(&back));
        back.reverse();
        prop_assert_eq!(forth, back);
    }

    #[test]
    fn no_text_is_too_odd(text in hostile()) {
        let mounts = mounts(&text);
        let heads = text.windows(7).filter(|w| *w == b"device ").count();
        prop_assert!(mounts.len() <= heads);
        clients(&mounts.iter().map(|stats| Mounted { stats, mount: None }).collect::<Vec<_>>());
    }
}

/// nfs-utils' own programs on the same text.
mod peers {
    use super::*;
    use std::process::Command;

    /// The program's output, with `file` in place of the kernel's text.
    fn ask(program: &str, file: &str, arguments: &str) -> Option<String> {
        if !Path::new(program).exists() {
            common::skip(&format!("no {program} (package nfs-common or nfs-utils)"));
            return None;
        }
        if let Some(reason) = common::namespace::missing() {
            common::skip(reason);
            return None;
        }
        let script = format!(r#"mount --bind "$1" /proc/$$/mountstats; exec "$2" {arguments}"#);
        let mut command: Command = common::namespace::shell(&script);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mountstats");
        let output = common::run::output(command.arg(folder.join(file)).arg(program));
        assert!(output.status.success(), "{}", common::run::shown(&output.stderr));
        Some(common::run::shown(&output.stdout))
    }

    /// nfsiostat knows the last connection only: 1/4 of the operations that it lists itself, line by line.
    #[test]
    fn nfsiostat_sees_one_connection_of_four() {
        let Some(text) = ask("/usr/sbin/nfsiostat", "several-xprt", "") else {
            return;
        };
        let mut words = text.split_whitespace().skip_while(|word| *word != "bklog").skip(1);
        let per_second: f64 = words.next().unwrap().parse().unwrap();
        let mount = mount(data("several-xprt"));
        let age = mount.age_s.unwrap() as f64;
        let last = mount.transports.last().unwrap().sends as f64 / age;
        let right = sum(&mount.transports, |t| t.sends) as f64 / age;
        assert!((per_second - last).abs() < 0.001, "{per_second}");
        assert!((right - mount.total_ops() as f64 / age).abs() < 0.001 && (right / per_second - 4.0).abs() < 0.001);
    }

    /// mountstats of 2.6.2 as well, and so tells more than 100 %.
    #[test]
    fn mountstats_tells_more_than_all() {
        let Some(text) = ask("/usr/sbin/mountstats", "several-xprt", "") else {
            return;
        };
        if text.contains("100000 RPC requests sent") {
            return common::skip(
                "this mountstats sums the connections; what is said of it was seen with nfs-utils 2.6.2",
            );
        }
        assert!(text.contains("25000 RPC requests sent"), "{text}");
        assert!(text.contains("60000 ops (240%)"), "{text}");
        let mount = mount(data("several-xprt"));
        assert_eq!(100 * ops(&mount, "READ") / sum(&mount.transports, |t| t.sends), 60);
    }

    /// A real mount with nconnect=4 of each kernel: both take its last connection for all, so that one operation is more than all of
    /// them together; of what all four have sent it is less.
    #[test]
    fn both_on_real_files() {
        for kernel in ["6.1", "6.12", "7.2"] {
            let file = format!("{kernel}/mountstats.nconnect4");
            let mounts = mounts(data(&file));
            let mount = mounts.iter().find(|mount| mount.transports.len() == 4).unwrap();
            let all = sum(&mount.transports, |t| t.sends);
            let last = mount.transports.last().unwrap().sends;
            let most = mount.ops.iter().map(|op| op.ops).max().unwrap();
            assert!(most > last && most <= all);

            let place = "mounted on /mnt/v42n4:";
            let (Some(of_mountstats), Some(of_nfsiostat)) = (
                ask("/usr/sbin/mountstats", &file, ""),
                ask("/usr/sbin/nfsiostat", &file, ""),
            ) else {
                return;
            };
            let of_mountstats = of_mountstats.split(place).nth(1).unwrap();
            if of_mountstats.contains(&format!("{all} RPC requests sent")) {
                return common::skip("this mountstats sums the connections");
            }
            let percent = 100 * most / last;
            assert!(
                of_mountstats.contains(&format!("  {last} RPC requests sent")),
                "{of_mountstats}"
            );
            assert!(
                of_mountstats.contains(&format!("\t{most} ops ({percent}%)")) && percent > 100,
                "{of_mountstats}"
            );

            // Divided by the age of the mount, one second at least.
            let mut numbers = of_nfsiostat.split(place).nth(1).unwrap().split_whitespace();
            let per_second: f64 = numbers.find_map(|word| word.parse().ok()).unwrap();
            let seconds = mount.age_s.unwrap().max(1) as f64;
            assert!(
                (per_second * seconds - last as f64).abs() < 0.01 * seconds,
                "{of_nfsiostat}"
            );
        }
    }

    /// Where there is one connection and one mount, all agree.
    #[test]
    fn with_one_connection_all_agree() {
        let Some(text) = ask("/usr/sbin/mountstats", "multiline-impl-id", "") else {
            return;
        };
        for mount in mounts(data("multiline-impl-id")) {
            let sends = sum(&mount.transports, |t| t.sends);
            assert!(text.contains(&format!("\n  {sends} RPC requests sent")), "{text}");
            assert!(text.contains(&format!(
                "\n\t{} ops ({}%)",
                ops(&mount, "READ"),
                100 * ops(&mount, "READ") / sends
            )));
        }
    }
}
