#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nfsrahead_fuzz::netlink(data));
