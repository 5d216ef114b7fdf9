//! Memory for a program that lives for a millisecond: a block of the program itself, given out once.
//!
//! musl's malloc asks the kernel for each size of its own and gives memory back at once, ten system calls of the thirty that
//! one call of this program may take; glibc's costs a sixth of all instructions. What does not fit the block comes from them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Several times what a call with Debian's nfs.conf takes; pages that are not touched cost nothing.
const SIZE: usize = 256 << 10;

/// The block, and how much of it has been given out.
pub struct Arena {
    block: UnsafeCell<[u8; SIZE]>,
    used: AtomicUsize,
}

// SAFETY: a part of the block belongs to whoever moved `used` past it, and to nobody else.
unsafe impl Sync for Arena {}

impl Arena {
    pub const fn empty() -> Arena {
        Arena {
            block: UnsafeCell::new([0; SIZE]),
            used: AtomicUsize::new(0),
        }
    }

    /// Where in the block this memory is; None if it is not of the block.
    fn offset(&self, memory: *mut u8) -> Option<usize> {
        let offset = (memory as usize).checked_sub(self.block.get() as usize)?;
        (offset < SIZE).then_some(offset)
    }

    /// Claims the next bytes; None where the block has no room.
    fn claim(&self, layout: Layout) -> Option<*mut u8> {
        let block = self.block.get().cast::<u8>();
        let place = |used: usize| {
            let start = block as usize;
            let offset = (start + used).checked_next_multiple_of(layout.align())? - start;
            let end = offset.checked_add(layout.size())?;
            (end <= SIZE).then_some((offset, end))
        };
        let used = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(place(used)?.1));
        let (offset, _) = place(used.ok()?)?;
        Some(block.wrapping_add(offset))
    }

    /// What was given out last can grow or shrink where it is; false if something else was given out after it.
    fn resize_last(&self, offset: usize, old_size: usize, new_size: usize) -> bool {
        let end = offset.checked_add(new_size).filter(|end| *end <= SIZE);
        end.is_some_and(|end| {
            let last = self
                .used
                .compare_exchange(offset + old_size, end, Ordering::Relaxed, Ordering::Relaxed);
            last.is_ok()
        })
    }
}

// SAFETY: `claim` gives every byte of the block to one owner at a time, aligned as asked for; what is not of the block is
// passed on to the allocator that it came from.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.claim(layout) {
            Some(memory) => memory,
            // SAFETY: what the caller promises about `layout` holds here as well.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        match self.offset(memory) {
            Some(offset) => {
                self.resize_last(offset, layout.size(), 0);
            }
            // SAFETY: what is not of the block came from System, with this layout.
            None => unsafe { System.dealloc(memory, layout) },
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some(offset) = self.offset(memory) else {
            // SAFETY: what is not of the block came from System, with this layout.
            return unsafe { System.realloc(memory, layout, new_size) };
        };
        if self.resize_last(offset, layout.size(), new_size) {
            return memory;
        }
        // SAFETY: the caller promises that `new_size` with this alignment makes a layout.
        let moved = unsafe { self.alloc(Layout::from_size_align_unchecked(new_size, layout.align())) };
        if !moved.is_null() {
            // SAFETY: both are at least as long as the shorter of the two; they do not overlap, for both are given out.
            unsafe { ptr::copy_nonoverlapping(memory, moved, layout.size().min(new_size)) };
        }
        moved
    }
}
