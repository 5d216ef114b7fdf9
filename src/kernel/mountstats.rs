//! /proc/self/mountstats: what each NFS mount has done, and over which connections.
//! (kernel: fs/nfs/super.c `nfs_show_stats`; net/sunrpc/stats.c `rpc_clnt_show_stats`)
//!
//! Memory of the kernel, nothing more: reading it asks no server and waits for none. It names no device and no address;
//! those are in mountinfo ([`crate::client`] puts both together).
//!
//! A line counts by its first word and its number of columns, not by the version that the file claims. What is not
//! understood is passed over and ends nothing: `impl_id` is text from the server and may hold newlines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use crate::decimal::decimal;
use crate::error::{Error, Result};
use crate::kernel::mountinfo::{option, unescape};
use crate::root::Root;

/// A longer line is not the kernel's: the longest has two paths of 4 KiB, each byte of them escaped.
const LINE_LIMIT: u64 = 64 << 10;
/// `impl_id` holds two strings of the server's, 1 KiB each (include/linux/nfs4.h `NFS4_OPAQUE_LIMIT`), and a date.
const IMPL_ID_LIMIT: usize = 2 * 1024 + 128;
/// More than these of one mount are not the kernel's: nconnect ends at 16, NFSv4.2 has some 80 operations.
const TRANSPORTS_LIMIT: usize = 256;
const OPS_LIMIT: usize = 256;

/// One NFS mount. Paths are decoded bytes; they need not be UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mount {
    pub source: Vec<u8>,
    pub mount_point: Vec<u8>,
    /// As in [`crate::kernel::mountinfo::Mount`].
    pub is_type_nfs4: bool,
    /// `opts:`, parted by commas. As in mountinfo, without `addr=`. Its `rw` is not to be trusted.
    pub options: Vec<u8>,
    /// What an NFSv4.1 server calls itself, the first line of `impl_id: name=`. Text from outside.
    pub implementation: Vec<u8>,
    /// `age:`, since the mount was made.
    pub age_s: Option<u64>,
    /// Calls of the readahead since Linux 5.18, before that of ->readpages (`events:`, `NFSIOS_VFSREADPAGES`).
    pub readahead_calls: Option<u64>,
    /// `bytes:`
    pub bytes: Option<Bytes>,
    /// Connections of the whole client, which other mounts may share and then list too: count them once a client.
    pub transports: Vec<Transport>,
    /// In the kernel's order. What the client does for all its mounts (EXCHANGE_ID, RENEW) is added into each.
    pub ops: Vec<Op>,
}

/// (kernel: include/linux/nfs_iostat.h `enum nfs_stat_bytecounters`)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bytes {
    /// By programs, through the page cache.
    pub cached_read_bytes: u64,
    pub cached_written_bytes: u64,
    /// By programs, with O_DIRECT.
    pub direct_read_bytes: u64,
    pub direct_written_bytes: u64,
    /// From and to the server.
    pub server_read_bytes: u64,
    pub server_written_bytes: u64,
    /// Through the page cache, in pages. By the readahead calls: the mean window.
    pub read_pages: u64,
    pub written_pages: u64,
}

/// How a connection is made (kernel: net/sunrpc/xprtsock.c and xprtrdma/transport.c, their `print_stats`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Proto {
    Tcp,
    Udp,
    Rdma,
    /// A socket of this host; no port.
    Local,
}

/// One connection (kernel: include/linux/sunrpc/xprt.h, `stat` of `struct rpc_xprt`).
///
/// The sums are taken at each send, so what they tell are means at a send: their growth by the growth of `sends`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transport {
    pub proto: Proto,
    /// 0 without a reserved port on NFSv4.1 and later.
    pub source_port: Option<u64>,
    pub binds: u64,
    /// None for udp, as the next two.
    pub connects: Option<u64>,
    /// Spent in connecting.
    pub connect_s: Option<u64>,
    /// Since its last use.
    pub idle_s: Option<u64>,
    pub sends: u64,
    pub receives: u64,
    /// Replies that nobody had asked for, as after a retransmission.
    pub bad_xids: u64,
    /// `req_u`: requests in flight.
    pub in_flight_sum: u64,
    /// `bklog_u`: requests without a slot.
    pub backlog_sum: u64,
    /// The most slots that were ever in use. None on old kernels and for rdma, as the next two.
    pub slots_max: Option<u64>,
    /// `sending_u`: requests that wait until another one is written.
    pub sending_sum: Option<u64>,
    /// `pending_u`: requests that wait for their reply.
    pub pending_sum: Option<u64>,
}

/// One operation of one mount (kernel: include/linux/sunrpc/metrics.h `struct rpc_iostats`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Op {
    name: [u8; Op::NAME_LIMIT],
    name_len: u8,
    pub ops: u64,
    pub transmissions: u64,
    /// Major timeouts.
    pub timeouts: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// From the request's creation until it is sent.
    pub queue_ms: u64,
    /// From there until its reply.
    pub rtt_ms: u64,
    /// The request's whole life.
    pub execution_ms: u64,
    /// Operations that ended with an error. None before Linux 5.3.
    pub errors: Option<u64>,
}

impl Mount {
    /// The value of an option.
    pub fn option(&self, name: &str) -> Option<&[u8]> {
        option(&self.options, name)
    }

    pub fn op(&self, name: &str) -> Option<&Op> {
        self.ops.iter().find(|op| op.name() == name.as_bytes())
    }

    /// Operations of all kinds.
    pub fn total_ops(&self) -> u64 {
        self.ops.iter().fold(0, |sum, op| sum.saturating_add(op.ops))
    }
}

impl Op {
    /// The longest of today has 20.
    const NAME_LIMIT: usize = 31;

    /// As the kernel spells it: READ, READ_PLUS; a number where it has no name.
    pub fn name(&self) -> &[u8] {
        &self.name[..usize::from(self.name_len)]
    }

    pub fn retransmissions(&self) -> u64 {
        self.transmissions.saturating_sub(self.ops)
    }
}

/// All NFS mounts of the text, in its order.
pub fn parse(text: impl BufRead) -> io::Result<Vec<Mount>> {
    let mut all = Vec::new();
    each(text, |mount| all.push(mount.clone()))?;
    Ok(all)
}

/// [`parse`] on the kernel's text.
pub fn mounts(root: &Root) -> Result<Vec<Mount>> {
    let path = root.mountstats();
    File::open(&path)
        .and_then(|file| parse(BufReader::with_capacity(64 << 10, file)))
        .map_err(Error::io("read", path))
}

/// Shows each NFS mount in turn; its memory is used again for the next one.
pub fn each(mut text: impl BufRead, visit: impl FnMut(&Mount)) -> io::Result<()> {
    let mut parser = Parser {
        visit,
        mount: Mount::default(),
        at: At::Outside,
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        text.by_ref().take(LINE_LIMIT).read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\n") {
            Some(line) => parser.line(line),
            None if line.is_empty() => break,
            None if line.len() as u64 == LINE_LIMIT => drop(text.skip_until(b'\n')?),
            None => parser.line(&line),
        }
    }
    parser.end_mount();
    Ok(())
}

/// Where the next line stands.
#[derive(Clone, Copy)]
enum At {
    /// In no mount, or in one that is not NFS.
    Outside,
    Head,
    /// Inside `impl_id`, with so many bytes that it may still have.
    ImplId(usize),
    Ops,
}

struct Parser<F> {
    visit: F,
    mount: Mount,
    at: At,
}

impl<F: FnMut(&Mount)> Parser<F> {
    fn line(&mut self, line: &[u8]) {
        if let At::ImplId(left) = self.at {
            match left.checked_sub(line.len() + 1) {
                Some(_) if is_impl_id_end(line) => return self.at = At::Head,
                Some(left) if !line.starts_with(b"\tcaps:") => return self.at = At::ImplId(left),
                _ => self.at = At::Head,
            }
        }
        if line.starts_with(b"device ") || line.starts_with(b"no device ") {
            self.end_mount();
            if self.start_mount(line).is_some() {
                self.at = At::Head;
            }
            return;
        }
        let Some(line) = line.strip_prefix(b"\t") else {
            return;
        };
        match self.at {
            At::Head => self.head(line),
            At::Ops if self.mount.ops.len() < OPS_LIMIT => self.mount.ops.extend(op(line)),
            _ => {}
        }
    }

    fn end_mount(&mut self) {
        if !matches!(self.at, At::Outside) {
            (self.visit)(&self.mount);
        }
        self.at = At::Outside;
    }

    /// `device SOURCE mounted on PATH with fstype TYPE statvers=N`
    fn start_mount(&mut self, line: &[u8]) -> Option<()> {
        let mut fields = line.strip_prefix(b"device ")?.split(|b| *b == b' ');
        let mut word = |expected: &[u8]| fields.next().filter(|field| expected.is_empty() || *field == expected);
        let source = word(b"")?;
        word(b"mounted")?;
        word(b"on")?;
        let mount_point = word(b"")?;
        word(b"with")?;
        word(b"fstype")?;
        let is_type_nfs4 = match word(b"")? {
            b"nfs" => false,
            b"nfs4" => true,
            _ => return None,
        };
        let mount = &mut self.mount;
        mount.is_type_nfs4 = is_type_nfs4;
        for (kept, new) in [
            (&mut mount.source, &*unescape(source)),
            (&mut mount.mount_point, &*unescape(mount_point)),
            (&mut mount.options, b""),
            (&mut mount.implementation, b""),
        ] {
            kept.clear();
            kept.extend_from_slice(new);
        }
        (mount.age_s, mount.readahead_calls, mount.bytes) = (None, None, None);
        mount.transports.clear();
        mount.ops.clear();
        Some(())
    }

    fn head(&mut self, line: &[u8]) {
        let mount = &mut self.mount;
        let Some(colon) = line.iter().position(|b| *b == b':') else {
            if line.trim_ascii() == b"per-op statistics" {
                self.at = At::Ops;
            }
            return;
        };
        let value = line[colon + 1..].trim_ascii();
        match &line[..colon] {
            b"opts" => {
                mount.options.clear();
                mount.options.extend_from_slice(value);
            }
            b"age" => mount.age_s = decimal(value),
            b"impl_id" => {
                let name = value.strip_prefix(b"name='").unwrap_or_default();
                mount.implementation.clear();
                mount.implementation.extend(name.iter().take_while(|b| **b != b'\''));
                if !is_impl_id_end(value) {
                    self.at = At::ImplId(IMPL_ID_LIMIT);
                }
            }
            b"events" => {
                if let Some(([.., calls], 10)) = numbers::<10>(value) {
                    mount.readahead_calls = Some(calls);
                }
            }
            b"bytes" => mount.bytes = bytes(value),
            b"xprt" if mount.transports.len() < TRANSPORTS_LIMIT => mount.transports.extend(transport(value)),
            _ => {}
        }
    }
}

/// `name='...',domain='...',date='...'`: the last quote.
fn is_impl_id_end(line: &[u8]) -> bool {
    line.ends_with(b"'")
}

fn bytes(value: &[u8]) -> Option<Bytes> {
    let (n, 8) = numbers::<8>(value)? else { return None };
    Some(Bytes {
        cached_read_bytes: n[0],
        cached_written_bytes: n[1],
        direct_read_bytes: n[2],
        direct_written_bytes: n[3],
        server_read_bytes: n[4],
        server_written_bytes: n[5],
        read_pages: n[6],
        written_pages: n[7],
    })
}

fn transport(value: &[u8]) -> Option<Transport> {
    let blank = value.iter().position(|b| *b == b' ')?;
    // What stands before `sends`: has it a port, has it connects?
    let (proto, has_port, has_connects) = match &value[..blank] {
        b"tcp" => (Proto::Tcp, true, true),
        b"rdma" => (Proto::Rdma, true, true),
        b"udp" => (Proto::Udp, true, false),
        b"local" => (Proto::Local, false, true),
        _ => return None,
    };
    let (n, len) = numbers::<13>(&value[blank..])?;
    let mut n = n[..len].iter().copied();
    let mut next_if = |is_there: bool| if is_there { n.next().map(Some) } else { Some(None) };
    let source_port = next_if(has_port)?;
    let binds = next_if(true)??;
    let connects = next_if(has_connects)?;
    let connect_s = next_if(has_connects)?;
    let idle_s = next_if(has_connects)?;
    let [sends, receives, bad_xids, in_flight_sum, backlog_sum] =
        [n.next()?, n.next()?, n.next()?, n.next()?, n.next()?];
    // From here on rdma has a list of its own.
    let mut late = || n.next().filter(|_| proto != Proto::Rdma);
    Some(Transport {
        proto,
        source_port,
        binds,
        connects,
        connect_s,
        idle_s,
        sends,
        receives,
        bad_xids,
        in_flight_sum,
        backlog_sum,
        slots_max: late(),
        sending_sum: late(),
        pending_sum: late(),
    })
}

fn op(line: &[u8]) -> Option<Op> {
    let line = line.trim_ascii_start();
    let colon = line.iter().position(|b| *b == b':')?;
    let (n, len) = numbers::<9>(&line[colon + 1..])?;
    if len < 8 {
        return None;
    }
    let mut name = [0; Op::NAME_LIMIT];
    name.get_mut(..colon)?.copy_from_slice(&line[..colon]);
    Some(Op {
        name,
        name_len: u8::try_from(colon).ok()?,
        ops: n[0],
        transmissions: n[1],
        timeouts: n[2],
        sent_bytes: n[3],
        received_bytes: n[4],
        queue_ms: n[5],
        rtt_ms: n[6],
        execution_ms: n[7],
        errors: (len == 9).then_some(n[8]),
    })
}

/// The first N numbers, and how many there are of them. None: one is no number. No second splitting: most of the text is numbers.
fn numbers<const N: usize>(text: &[u8]) -> Option<([u64; N], usize)> {
    let mut found = [0u64; N];
    let mut len = 0;
    let mut rest = text.trim_ascii_start();
    while len < N && !rest.is_empty() {
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let (number, after) = rest.split_at(digits);
        if !matches!(after.first(), None | Some(b' ' | b'\t')) {
            return None;
        }
        found[len] = decimal(number)?;
        len += 1;
        rest = after.trim_ascii_start();
    }
    Some((found, len))
}
