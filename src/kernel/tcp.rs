//! The TCP connections to a server, as the kernel sees them: sock_diag(7).
//! (kernel: net/ipv4/inet_diag.c `inet_diag_dump_icsk`, net/ipv4/tcp.c `tcp_get_info`; include/uapi/linux/tcp.h `struct tcp_info`)

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::kernel::netlink::{attribute, messages, u32_at, u64_at, Ask, End, Protocol, Socket as Netlink};

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
    /// Segments that were sent again, and of them those that had arrived: the other side said so (DSACK).
    pub retransmits: Option<u64>,
    pub needless_retransmits: Option<u64>,
    /// Packets that came out of order, since Linux 5.4.
    pub out_of_order: Option<u64>,
}

/// `struct inet_diag_msg`
const DIAG: usize = 72;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
/// `TCPF_ESTABLISHED`
const ESTABLISHED: u32 = 1 << 1;

/// All established connections to this port, of the reader's network namespace. Needs no capability.
pub fn connections_to(port: u16) -> io::Result<Vec<Socket>> {
    let socket = Netlink::open(Protocol::SockDiag)?;
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let body = request(u8::try_from(family).unwrap_or_default(), port);
        socket.ask(SOCK_DIAG_BY_FAMILY, Ask::All, &body, |text| parse(text, &mut found))?;
    }
    Ok(found)
}

/// `struct inet_diag_req_v2`: family, protocol (TCP), extensions, padding, states, and the ports to match.
fn request(family: u8, port: u16) -> Vec<u8> {
    const LENGTH: usize = 56;
    let mut text = Vec::with_capacity(LENGTH);
    text.extend([family, 6, 1 << (INET_DIAG_INFO - 1), 0]);
    text.extend(ESTABLISHED.to_ne_bytes());
    text.extend([0, 0]);
    text.extend(port.to_be_bytes());
    text.resize(LENGTH, 0);
    text
}

/// The connections of one datagram.
pub fn parse(text: &[u8], found: &mut Vec<Socket>) -> End {
    messages(text, SOCK_DIAG_BY_FAMILY, |body| found.extend(socket(body)))
}

/// `struct inet_diag_msg` and its attributes.
fn socket(text: &[u8]) -> Option<Socket> {
    let family = i32::from(*text.first()?);
    let info = attribute(text.get(DIAG..)?, INET_DIAG_INFO).unwrap_or_default();
    let number = |at: usize| u32_at(info, at).map(u64::from);
    let long = |at: usize| u64_at(info, at);
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
        retransmits: number(100),
        needless_retransmits: number(216),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::netlink::attribute_text;
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

    /// Kernels of 4.19 have no `tcpi_rcv_ooopack`, older ones less.
    #[test]
    fn a_short_structure_leaves_the_rest_unknown() {
        let mut body = [0u8; DIAG];
        body[0] = u8::try_from(libc::AF_INET).unwrap();
        body[24..28].copy_from_slice(&[192, 0, 2, 10]);
        for (length, knows_sent, knows_order) in [(0, false, false), (216, true, false), (232, true, true)] {
            let text = [&body[..], &attribute_text(INET_DIAG_INFO, &vec![1; length])].concat();
            let socket = socket(&text).unwrap();
            assert_eq!(socket.remote, IpAddr::from([192, 0, 2, 10]));
            assert_eq!(socket.bytes_sent.is_some(), knows_sent, "{length}");
            assert_eq!(socket.out_of_order.is_some(), knows_order, "{length}");
        }
        assert_eq!(socket(&body[..DIAG - 1]), None);
    }
}
