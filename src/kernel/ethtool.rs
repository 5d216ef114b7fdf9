//! Whether an interface merges received packets. (kernel: net/ethtool/ioctl.c `dev_ethtool`; these need no capability)

use std::io;

use crate::kernel::netlink::{Protocol, Socket};

/// None: the kernel does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offloads {
    pub gro: Option<bool>,
    pub lro: Option<bool>,
}

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_GGRO: u32 = 0x2b;
/// `ETH_FLAG_LRO`
const FLAG_LRO: u32 = 1 << 15;

/// `struct ethtool_value`
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// `struct ifreq`, with the pointer of its union.
#[repr(C)]
struct Request {
    name: [u8; 16],
    value: *mut Value,
    rest: [u8; 16],
}

/// Of this process's network namespace.
pub fn offloads(interface: &str) -> Offloads {
    let value = |command| get(interface, command).ok();
    Offloads {
        gro: value(ETHTOOL_GGRO).map(|value| value != 0),
        lro: value(ETHTOOL_GFLAGS).map(|flags| flags & FLAG_LRO != 0),
    }
}

fn get(interface: &str, command: u32) -> io::Result<u32> {
    let mut name = [0u8; 16];
    let bytes = interface.as_bytes();
    // The last byte stays 0.
    name.get_mut(..bytes.len())
        .filter(|_| bytes.len() < 16)
        .ok_or(io::ErrorKind::InvalidInput)?
        .copy_from_slice(bytes);
    // Any socket will do; this is one that a service without the internet's families may open.
    let socket = Socket::open(Protocol::Route)?;
    let mut value = Value { command, data: 0 };
    let mut request = Request {
        name,
        value: &raw mut value,
        rest: [0; 16],
    };
    // SAFETY: both commands write one `ethtool_value` through the pointer, which lives until the call returns, and the request is as
    // large as the kernel's.
    let r = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    match r {
        0.. => Ok(value.data),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_merges_nothing_that_comes_from_a_wire() {
        // The kernel's own default for it (net/core/dev.c: NETIF_F_SOFT_FEATURES).
        assert!(offloads("lo").gro.is_some());
        assert_eq!(offloads("no such thing"), Offloads::default());
        assert_eq!(offloads("a name that is too long"), Offloads::default());
    }
}
