//! Does the kernel talk to this server already? Then it would use those connections for our mount too, whatever nconnect
//! says (kernel: fs/nfs/client.c `nfs_match_client`).

use std::io;
use std::net::IpAddr;

use nfsrahead::error::{Error, Result};
use nfsrahead::kernel::nfsfs;
use nfsrahead::root::Root;

/// Clients of the kernel for these addresses, in the network namespace of this thread.
pub fn clients(root: &Root, addresses: &[IpAddr]) -> Result<usize> {
    let servers = nfsfs::servers_of_thread(root)?;
    Ok(servers.iter().filter(|server| addresses.contains(server)).count())
}

pub fn refusal(export: &str, is_own_netns: bool) -> Error {
    let instead = if is_own_netns {
        "unmount it there first"
    } else {
        "unmount all of this server first; or measure in a network namespace that has its own way to the server \
         (ip netns add bench; ip link add link DEVICE name bench0 netns bench type macvlan; give it an address) with \
         --netns bench; or, with NFS 3 and 4.0, by another address of the server"
    };
    let why = format!("this server is mounted already, and a second mount would share its connections: {instead}");
    Error::io("measure", export)(io::Error::other(why))
}

/// The kernel made another number of connections than it was asked for.
pub fn mismatch(export: &str, asked: u64, there: usize) -> Error {
    let why = format!(
        "asked for {asked} connections, the kernel uses {there}: it knows the server by another address (NFS 4.1 and later \
         find that out), or its first mount is still there"
    );
    Error::io("measure", export)(io::Error::other(why))
}
