//! Devices that no mount table of ours names: mounted in a pod, or in a service with mounts of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::error::{Error, Result};
use crate::kernel::bdi::{Bdi, Dev};
use crate::kernel::mountinfo::Mount;
use crate::kernel::namespaces::mounts_elsewhere;
use crate::root::Root;
use crate::sample::{instance, Device, Sample};

/// How often a device is looked for: its mount may be attached a little later than it appears.
const TRIES: u32 = 3;

/// What was looked for, and with what success.
#[derive(Debug, Default)]
pub struct Elsewhere {
    looked_for: BTreeMap<Dev, Looked>,
}

#[derive(Debug)]
struct Looked {
    instance: u64,
    tries: u32,
    mounts: Vec<Mount>,
}

impl Elsewhere {
    /// Completes a sample: devices without a mount get those of other namespaces, and NFS devices that only other namespaces
    /// know are added. What is found nowhere stays out, and is not looked for again and again. The devices that this call gave
    /// up are the answer.
    pub fn complete(&mut self, root: &Root, sample: &mut Sample) -> Result<Vec<Dev>> {
        let unknown = unknown(root, sample)?;
        let is_same = |dev: &Dev, looked: &Looked| unknown.get(dev) == Some(&looked.instance);
        self.looked_for.retain(|dev, looked| is_same(dev, looked));
        let wanted: BTreeSet<Dev> = unknown
            .keys()
            .filter(|dev| {
                self.looked_for
                    .get(dev)
                    .is_none_or(|looked| looked.mounts.is_empty() && looked.tries < TRIES)
            })
            .copied()
            .collect();
        let found = if wanted.is_empty() {
            Vec::new()
        } else {
            mounts_elsewhere(root, &wanted)?
        };
        let mut given_up = Vec::new();
        for dev in wanted {
            let Some(instance) = unknown.get(&dev) else { continue };
            let looked = self.looked_for.entry(dev).or_insert(Looked {
                instance: *instance,
                tries: 0,
                mounts: Vec::new(),
            });
            looked.tries += 1;
            looked.mounts = found.iter().filter(|mount| mount.dev == dev).cloned().collect();
            if looked.mounts.is_empty() && looked.tries == TRIES {
                given_up.push(dev);
            }
        }
        for (dev, looked) in self.looked_for.iter().filter(|(_, looked)| !looked.mounts.is_empty()) {
            add(root, sample, *dev, looked);
        }
        Ok(given_up)
    }
}

/// Anonymous devices without a mount in the sample, and their instances.
fn unknown(root: &Root, sample: &Sample) -> Result<BTreeMap<Dev, u64>> {
    let path = root.bdis();
    let entries = fs::read_dir(&path).map_err(Error::io("list", path))?;
    let known: BTreeSet<Dev> = sample
        .devices
        .iter()
        .filter(|device| !device.mounts.is_empty())
        .map(|device| device.dev)
        .collect();
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let devs = names.filter_map(|name| Dev::parse(name.as_encoded_bytes()));
    let unknown = devs.filter(|dev| dev.is_anonymous() && !known.contains(dev));
    Ok(unknown.filter_map(|dev| Some((dev, instance(root, dev)?))).collect())
}

fn add(root: &Root, sample: &mut Sample, dev: Dev, looked: &Looked) {
    if let Some(device) = sample.devices.iter_mut().find(|device| device.dev == dev) {
        device.mounts.clone_from(&looked.mounts);
        return;
    }
    let Some(version) = looked.mounts.first().map(Mount::version) else {
        return;
    };
    sample.devices.push(Device {
        dev,
        instance: looked.instance,
        version,
        mounts: looked.mounts.clone(),
        is_elsewhere: true,
        read_ahead_kib: Bdi::now_kib(root, dev).ok().flatten(),
        link_bits_per_s: None,
        activity: None,
    });
}
