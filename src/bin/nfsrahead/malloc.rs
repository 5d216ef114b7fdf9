//! C's names for [`Arena`]. A static program may bring its own malloc (GNU C library manual, "Replacing malloc"), and only so
//! does the start-up of the C library, which allocates before main, use it too: a Rust allocator alone saves no system call.
//! All that anything in this program refers to is here; a name that were missing would not link.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::arena::Arena;

static ARENA: Arena = Arena::new();

/// What all pieces of the arena are aligned to.
const ALIGNMENT: usize = 16;

#[no_mangle]
extern "C" fn malloc(size: usize) -> *mut c_void {
    ARENA.allocate(size).cast()
}

#[no_mangle]
extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else {
        return ptr::null_mut();
    };
    let piece = ARENA.allocate(size);
    if !piece.is_null() {
        // SAFETY: the piece is ours and has `size` bytes.
        unsafe { piece.write_bytes(0, size) };
    }
    piece.cast()
}

/// # Safety
/// `piece` is null, or from here and in use.
#[no_mangle]
unsafe extern "C" fn realloc(piece: *mut c_void, size: usize) -> *mut c_void {
    if piece.is_null() {
        return malloc(size);
    }
    // SAFETY: as the caller promises.
    unsafe { ARENA.resize(piece.cast(), size).cast() }
}

/// # Safety
/// `piece` is null, or from here and in use.
#[no_mangle]
unsafe extern "C" fn free(piece: *mut c_void) {
    if !piece.is_null() {
        // SAFETY: as the caller promises.
        unsafe { ARENA.release(piece.cast()) };
    }
}

/// Nothing here asks for more than [`ALIGNMENT`]; if something ever does, the answer is that there is no memory.
///
/// # Safety
/// `piece` can be written to.
#[no_mangle]
unsafe extern "C" fn posix_memalign(piece: *mut *mut c_void, alignment: usize, size: usize) -> c_int {
    let found = if alignment <= ALIGNMENT {
        malloc(size)
    } else {
        ptr::null_mut()
    };
    if found.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: as the caller promises.
    unsafe { *piece = found };
    0
}
