//! Memory for a program that lives for half a millisecond.
//!
//! The GNU C library's malloc takes 4 system calls (3 brk, 1 getrandom) and a quarter of all instructions of one call of the
//! helper, most of it to get ready for long-running programs with threads. This one starts with a block that the program was
//! loaded with, hands out powers of two, and keeps what is given back for the next that asks for as much. Nothing goes back
//! to the kernel.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// More than one call takes, whatever it reads. Pages that nobody touches cost nothing.
const BLOCK: usize = 256 << 10;
/// What is asked of the kernel when the block is used up.
const REGION: usize = 1 << 20;
/// Before each piece; also the alignment of all pieces.
const HEADER: usize = 16;
/// By the logarithm of the size of a piece with its header.
const CLASSES: usize = usize::BITS as usize;

pub struct Arena {
    is_held: AtomicBool,
    inside: UnsafeCell<Inside>,
    block: Block,
}

#[repr(align(16))]
struct Block(UnsafeCell<[u8; BLOCK]>);

struct Inside {
    is_block_used: bool,
    /// What has not been handed out yet.
    next: *mut u8,
    left: usize,
    /// What was given back: each piece begins with the address of the next one.
    free: [*mut u8; CLASSES],
}

// SAFETY: `inside` is touched only between taking and releasing `is_held`; of `block` each part has one owner.
unsafe impl Sync for Arena {}

impl Arena {
    pub const fn new() -> Arena {
        Arena {
            is_held: AtomicBool::new(false),
            inside: UnsafeCell::new(Inside {
                is_block_used: false,
                next: ptr::null_mut(),
                left: 0,
                free: [ptr::null_mut(); CLASSES],
            }),
            block: Block(UnsafeCell::new([0; BLOCK])),
        }
    }

    /// At least `size` bytes, at a multiple of 16. Null: there are none.
    pub fn allocate(&self, size: usize) -> *mut u8 {
        let Some(class) = class(size) else {
            return ptr::null_mut();
        };
        self.locked(|inside| inside.take(class, self.block.0.get().cast()))
    }

    /// # Safety
    /// `piece` is from this arena, has not been given back and is used no more.
    pub unsafe fn release(&self, piece: *mut u8) {
        // SAFETY: as the caller promises; a piece in use has its class before it and room for an address in it.
        self.locked(|inside| unsafe {
            let class = class_of(piece);
            *piece.cast() = inside.free[class];
            inside.free[class] = piece;
        });
    }

    /// The same bytes in a piece of at least `size`, often the same one. Null: there is none, and `piece` stays.
    ///
    /// # Safety
    /// `piece` is from this arena and has not been given back; only what this returns is used from now on.
    pub unsafe fn resize(&self, piece: *mut u8, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        let room = (1 << unsafe { class_of(piece) }) - HEADER;
        if size <= room {
            return piece;
        }
        let larger = self.allocate(size);
        if !larger.is_null() {
            // SAFETY: two pieces in use do not overlap, and the new one is larger than the old one, which has `room` bytes.
            unsafe {
                ptr::copy_nonoverlapping(piece, larger, room);
                self.release(piece);
            }
        }
        larger
    }

    /// The helper has no threads; this makes it right in a program that has.
    fn locked<T>(&self, work: impl FnOnce(&mut Inside) -> T) -> T {
        while self.is_held.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        // SAFETY: only who took `is_held` is here, and `work` cannot keep the reference.
        let result = work(unsafe { &mut *self.inside.get() });
        self.is_held.store(false, Ordering::Release);
        result
    }
}

impl Inside {
    fn take(&mut self, class: usize, block: *mut u8) -> *mut u8 {
        let piece = self.free[class];
        if !piece.is_null() {
            // SAFETY: a piece that was given back begins with the address of the next one.
            self.free[class] = unsafe { piece.cast::<*mut u8>().read() };
            return piece;
        }
        let size = 1 << class;
        if self.left < size && !self.refill(size, block) {
            return ptr::null_mut();
        }
        let start = self.next;
        self.left -= size;
        // SAFETY: `size` bytes are left at `next`, which is at a multiple of 16, and `size` is a multiple of it.
        unsafe {
            self.next = start.add(size);
            *start.cast() = class;
            start.add(HEADER)
        }
    }

    /// False: the kernel has no more. What is left of the old region is lost.
    fn refill(&mut self, size: usize, block: *mut u8) -> bool {
        if !self.is_block_used && size <= BLOCK {
            self.is_block_used = true;
            self.next = block;
            self.left = BLOCK;
            return true;
        }
        let length = size.max(REGION);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory, at a place that the kernel chooses.
        let region = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        if region == libc::MAP_FAILED {
            return false;
        }
        self.next = region.cast();
        self.left = length;
        true
    }
}

/// None: no program has so much.
fn class(size: usize) -> Option<usize> {
    let whole = size.checked_add(HEADER)?.max(2 * HEADER).checked_next_power_of_two()?;
    usize::try_from(whole.trailing_zeros()).ok()
}

/// # Safety
/// `piece` is from an arena and has not been given back.
unsafe fn class_of(piece: *mut u8) -> usize {
    // SAFETY: the header stands before the piece, written when it was cut.
    unsafe { piece.sub(HEADER).cast::<usize>().read() }
}
