//! What the kernel says. One file an interface; bytes in, plain values out; nothing here writes.
