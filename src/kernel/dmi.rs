//! /sys/class/dmi/id: what the firmware says of the machine. (kernel: drivers/firmware/dmi-id.c)

use crate::kernel::read_small;
use crate::root::Root;

/// Does the firmware name a cloud vendor whose own advice for NFS is 15 × rsize?
pub fn is_cloud(root: &Root) -> bool {
    let vendor = read_small(&root.dmi_sys_vendor(), 256).unwrap_or_default();
    ["Amazon EC2", "Microsoft Corporation", "Google"]
        .iter()
        .any(|cloud| vendor.trim_ascii() == cloud.as_bytes())
}
