//! The TCP connections to a server, as the kernel sees them: sock_diag(7).
//! (kernel: net/ipv4/inet_diag.c `inet_diag_dump_icsk`, net/ipv4/tcp.c `tcp_get_info`; include/uapi/linux/tcp.h `struct tcp_info`)

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// One established connection. Older kernels give a shorter structure: what they do not say is None.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    pub local_port: u16,
    pub remote: IpAddr,
    pub remote_port: u16,
    /// Smoothed, and the least that was seen.
    pub rtt_us: Option<u64>,
    pub min_rtt_us: Option<u64>,
    /// Of the way to the server, as far as it is known.
    pub path_mtu_bytes: Option<u64>,
    pub bytes_received: Option<u64>,
    pub segments_in: Option<u64>,
    /// Time in which something was to be sent, and of it what the other side's window and our buffer were too small for.
    pub busy_us: Option<u64>,
    pub window_limited_us: Option<u64>,
    pub buffer_limited_us: Option<u64>,
    pub bytes_sent: Option<u64>,
    pub bytes_retransmitted: Option<u64>,
    /// Packets that came out of order, since Linux 5.4.
    pub out_of_order: Option<u64>,
}

/// Of a netlink message, and of one of its attributes.
const HEADER: usize = 16;
const DIAG: usize = 72;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const INET_DIAG_INFO: u16 = 2;
/// `TCPF_ESTABLISHED`
const ESTABLISHED: u32 = 1 << 1;
/// A host with more connections to one port has another problem.
const MESSAGES: usize = 4096;

/// All established connections to this port, of the reader's network namespace. Needs no capability.
pub fn connections_to(port: u16) -> io::Result<Vec<Socket>> {
    let socket = open()?;
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        send(&socket, &request(u8::try_from(family).unwrap_or_default(), port))?;
        let mut buffer = vec![0u8; 64 << 10];
        for _ in 0..MESSAGES {
            let n = receive(&socket, &mut buffer)?;
            if parse(&buffer[..n], &mut found) == End::Last {
                break;
            }
        }
    }
    Ok(found)
}

fn request(family: u8, port: u16) -> Vec<u8> {
    /// `NLM_F_REQUEST | NLM_F_DUMP`
    const FLAGS: u16 = 0x301;
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    let mut text = Vec::with_capacity(HEADER + 56);
    text.extend(u32::try_from(HEADER + 56).unwrap_or_default().to_ne_bytes());
    text.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    text.extend(FLAGS.to_ne_bytes());
    text.extend([0; 8]);
    // struct inet_diag_req_v2: family, protocol (TCP), extensions, padding, states, and the ports to match.
    text.extend([family, 6, 1 << (INET_DIAG_INFO - 1), 0]);
    text.extend(ESTABLISHED.to_ne_bytes());
    text.extend([0, 0]);
    text.extend(port.to_be_bytes());
    text.resize(HEADER + 56, 0);
    text
}

/// Does more follow?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    More,
    Last,
}

/// The connections of one datagram. No length in it is trusted.
pub fn parse(mut text: &[u8], found: &mut Vec<Socket>) -> End {
    while let Some(length) = u32_at(text, 0).and_then(|length| usize::try_from(length).ok()) {
        if length < HEADER || length > text.len() {
            return End::Last;
        }
        match u16_at(text, 4) {
            Some(NLMSG_DONE | NLMSG_ERROR) => return End::Last,
            _ => found.extend(socket(&text[HEADER..length])),
        }
        text = text.get(aligned(length)..).unwrap_or_default();
    }
    End::More
}

/// `struct inet_diag_msg` and its attributes.
fn socket(text: &[u8]) -> Option<Socket> {
    let family = i32::from(*text.first()?);
    let mut attributes = text.get(DIAG..)?;
    let mut info: &[u8] = &[];
    while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let length = usize::from(length);
        if length < 4 || length > attributes.len() {
            break;
        }
        if kind == INET_DIAG_INFO {
            info = &attributes[4..length];
        }
        attributes = attributes.get(aligned(length)..).unwrap_or_default();
    }
    let number = |at: usize| u32_at(info, at).map(u64::from);
    let long = |at: usize| Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?));
    Some(Socket {
        local_port: u16::from_be_bytes(text.get(4..6)?.try_into().ok()?),
        remote_port: u16::from_be_bytes(text.get(6..8)?.try_into().ok()?),
        remote: address(family, text.get(24..40)?)?,
        path_mtu_bytes: number(60),
        rtt_us: number(68),
        bytes_received: long(128),
        segments_in: number(140),
        min_rtt_us: number(148),
        busy_us: long(168),
        window_limited_us: long(176),
        buffer_limited_us: long(184),
        bytes_sent: long(200),
        bytes_retransmitted: long(208),
        out_of_order: number(224),
    })
}

fn address(family: i32, text: &[u8]) -> Option<IpAddr> {
    match family {
        libc::AF_INET => Some(Ipv4Addr::from(<[u8; 4]>::try_from(text.get(..4)?).ok()?).into()),
        libc::AF_INET6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(text).ok()?).to_canonical()),
        _ => None,
    }
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn u16_at(text: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(text.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(text: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(text.get(at..at + 4)?.try_into().ok()?))
}

fn open() -> io::Result<OwnedFd> {
    const NETLINK_SOCK_DIAG: libc::c_int = 4;
    // SAFETY: socket(2) takes no memory.
    let fd = unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            NETLINK_SOCK_DIAG,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn send(socket: &OwnedFd, text: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel reads `text` only; a netlink socket without an address speaks to the kernel.
    let n = unsafe { libc::send(socket.as_raw_fd(), text.as_ptr().cast(), text.len(), 0) };
    if n < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The kernel's answer is there when send(2) returns; what does not come at once does not come.
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most the given length into the buffer.
    let n = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_real_connection_is_found_with_its_counters() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut near = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        far.write_all(&[7; 1000]).unwrap();
        near.read_exact(&mut [0; 1000]).unwrap();
        let found = match connections_to(port) {
            Ok(found) => found,
            Err(e) => return crate::common::skip(&format!("no sock_diag: {e}")),
        };
        let socket = found
            .iter()
            .find(|socket| socket.local_port == near.local_addr().unwrap().port())
            .unwrap();
        assert_eq!((socket.remote, socket.remote_port), (Ipv4Addr::LOCALHOST.into(), port));
        assert_eq!(socket.bytes_received, Some(1000));
        assert!(socket.path_mtu_bytes.unwrap() > 500 && socket.segments_in.unwrap() >= 2);
        assert_eq!(socket.bytes_retransmitted, Some(0));
        assert!(found.iter().all(|socket| socket.remote_port == port));
    }

    #[test]
    fn lengths_that_lie_end_the_reading() {
        for length in [0u32, 1, 15, 17, 80, u32::MAX] {
            let mut text = length.to_ne_bytes().to_vec();
            text.resize(80, 1);
            let mut found = Vec::new();
            parse(&text, &mut found);
            assert!(found.is_empty());
        }
    }
}
