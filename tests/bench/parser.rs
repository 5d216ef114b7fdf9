//! `parser FILE`: how fast the mountstats parser is, without a program's start and output, and how often it allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nfsrahead::kernel::mountstats;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counted;

// SAFETY: each call goes to the system's allocator as it came, with what its caller promises.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// In all.
const TIME: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("parser FILE")?;
    let text = std::fs::read(path)?;
    let lines = text.iter().filter(|b| **b == b'\n').count();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let mounts = mountstats::parse(&text[..])?;
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    let operations: usize = mounts.iter().map(|mount| mount.ops.len()).sum();
    let mut rates = Vec::new();
    let started = Instant::now();
    while rates.len() < 5 || started.elapsed() < TIME {
        let round = Instant::now();
        std::hint::black_box(mountstats::parse(std::hint::black_box(&text[..]))?);
        rates.push(text.len() as f64 / round.elapsed().as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    writeln!(
        std::io::stdout(),
        "the parser alone: {:.0} MB/s (300 wanted); {lines} lines, {} mounts, {operations} operations, {allocations} allocations",
        rates[rates.len() / 2] / 1e6,
        mounts.len()
    )?;
    Ok(())
}
