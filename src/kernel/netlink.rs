//! Questions to the kernel over netlink(7): sent, answered at once, and taken apart without trust in any length.
//! (kernel: net/netlink/af_netlink.c; include/uapi/linux/netlink.h)

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `struct nlmsghdr` and `struct nlattr`.
const HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
/// The two flags in an attribute's kind (`NLA_TYPE_MASK`).
const KIND_MASK: u16 = 0x3fff;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
/// What one datagram holds at most (`netlink_dump` makes 32 KiB of it).
const DATAGRAM: usize = 64 << 10;
/// An answer in more datagrams than this is cut.
const DATAGRAMS: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Route,
    SockDiag,
}

/// One answer, or all there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    One,
    All,
}

/// A socket that speaks to the kernel alone. It needs no capability.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    pub fn open(protocol: Protocol) -> io::Result<Socket> {
        let protocol = match protocol {
            Protocol::Route => libc::NETLINK_ROUTE,
            Protocol::SockDiag => libc::NETLINK_SOCK_DIAG,
        };
        // SAFETY: socket(2) takes no memory.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, protocol) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Socket(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// For ioctl(2) on devices, which any socket takes.
    pub fn as_raw_fd(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Shows each datagram of the answer, until one says that it is the last.
    pub fn ask(&self, kind: u16, ask: Ask, body: &[u8], mut visit: impl FnMut(&[u8]) -> End) -> io::Result<()> {
        let text = request(kind, ask, body);
        // SAFETY: the kernel reads `text` only; a netlink socket without an address speaks to the kernel.
        let n = unsafe { libc::send(self.as_raw_fd(), text.as_ptr().cast(), text.len(), 0) };
        if n < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut buffer = vec![0u8; DATAGRAM];
        for _ in 0..DATAGRAMS {
            let n = self.receive(&mut buffer)?;
            let end = visit(buffer.get(..n).unwrap_or_default());
            if end == End::Last || ask == Ask::One {
                break;
            }
        }
        Ok(())
    }

    /// The kernel makes its answer before send(2) returns, and the rest of it in recv(2): what does not come at once does not come.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the kernel writes at most the given length into the buffer.
        let n = unsafe {
            libc::recv(
                self.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    }
}

fn request(kind: u16, ask: Ask, body: &[u8]) -> Vec<u8> {
    let flags = match ask {
        Ask::One => NLM_F_REQUEST,
        Ask::All => NLM_F_REQUEST | NLM_F_DUMP,
    };
    let length = u32::try_from(HEADER + body.len()).unwrap_or(u32::MAX);
    let mut text = Vec::with_capacity(HEADER + body.len());
    text.extend(length.to_ne_bytes());
    text.extend(kind.to_ne_bytes());
    text.extend(flags.to_ne_bytes());
    text.extend([0; 8]);
    text.extend(body);
    text
}

/// Does another datagram follow?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    More,
    Last,
}

/// Shows the body of each message of one kind in a datagram.
pub fn messages(mut text: &[u8], wanted: u16, mut visit: impl FnMut(&[u8])) -> End {
    while let Some(length) = u32_at(text, 0).and_then(|length| usize::try_from(length).ok()) {
        let Some(body) = text.get(HEADER..length) else {
            return End::Last;
        };
        match u16_at(text, 4) {
            Some(NLMSG_DONE | NLMSG_ERROR) | None => return End::Last,
            Some(kind) if kind == wanted => visit(body),
            Some(_) => {}
        }
        text = text.get(aligned(length)..).unwrap_or_default();
    }
    End::More
}

/// The value of the last attribute of this kind.
pub fn attribute(mut text: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut found = None;
    while let (Some(length), Some(kind)) = (u16_at(text, 0), u16_at(text, 2)) {
        let length = usize::from(length);
        let Some(value) = text.get(ATTRIBUTE_HEADER..length) else {
            break;
        };
        if kind & KIND_MASK == wanted {
            found = Some(value);
        }
        text = text.get(aligned(length)..).unwrap_or_default();
    }
    found
}

/// One attribute, padded.
pub fn attribute_text(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = ATTRIBUTE_HEADER + value.len();
    let mut text = Vec::with_capacity(aligned(length));
    text.extend(u16::try_from(length).unwrap_or(u16::MAX).to_ne_bytes());
    text.extend(kind.to_ne_bytes());
    text.extend(value);
    text.resize(aligned(length), 0);
    text
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

pub fn u16_at(text: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(text.get(at..at + 2)?.try_into().ok()?))
}

pub fn u32_at(text: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(text.get(at..at + 4)?.try_into().ok()?))
}

pub fn u64_at(text: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(text.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut text = request(kind, Ask::One, body);
        text.resize(aligned(text.len()), 0);
        text
    }

    #[test]
    fn messages_and_attributes_come_back() {
        let body = [attribute_text(4, b"abc"), attribute_text(0x8000 | 7, b"x")].concat();
        let text = [message(24, &body), message(25, b"other"), message(24, b"")].concat();
        let mut seen = Vec::new();
        assert_eq!(messages(&text, 24, |body| seen.push(body.to_vec())), End::More);
        assert_eq!(seen, [body.clone(), Vec::new()]);
        assert_eq!(attribute(&body, 4), Some(&b"abc"[..]));
        assert_eq!(attribute(&body, 7), Some(&b"x"[..]));
        assert_eq!(attribute(&body, 5), None);
        let text = [message(24, b"a"), message(NLMSG_DONE, b""), message(24, b"b")].concat();
        let mut n = 0;
        assert_eq!(messages(&text, 24, |_| n += 1), End::Last);
        assert_eq!(n, 1);
    }

    #[test]
    fn lengths_that_lie_end_the_reading() {
        for length in [0u32, 1, 15, 81, u32::MAX] {
            let mut text = length.to_ne_bytes().to_vec();
            text.resize(80, 1);
            assert_eq!(messages(&text, 0x0101, |_| panic!()), End::Last, "{length}");
        }
        for length in [0u16, 3, 81, u16::MAX] {
            let mut text = length.to_ne_bytes().to_vec();
            text.resize(80, 1);
            assert_eq!(attribute(&text, 0x0101), None, "{length}");
        }
    }
}
