//! The helper's allocator, as the allocator of this test program and by hand.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::alloc::{GlobalAlloc, Layout};

#[path = "../src/bin/nfsrahead/arena.rs"]
mod arena;

#[global_allocator]
static MEMORY: arena::Arena = arena::Arena::empty();

/// Far more than the block holds, from several threads, checked byte by byte.
#[test]
fn a_whole_program_can_live_on_it() {
    let threads: Vec<_> = (0u8..4)
        .map(|seed| {
            std::thread::spawn(move || {
                let mut kept: Vec<Vec<u8>> = Vec::new();
                for round in 0..2000usize {
                    let byte = seed.wrapping_mul(31).wrapping_add(u8::try_from(round % 251).unwrap());
                    let mut part = vec![byte; round % 700];
                    part.extend(std::iter::repeat_n(byte, round % 3000));
                    if round % 3 == 1 {
                        kept.swap_remove(round % kept.len());
                    }
                    kept.push(part);
                    for part in &kept[kept.len().saturating_sub(3)..] {
                        assert!(part.windows(2).all(|pair| pair[0] == pair[1]));
                    }
                }
                kept.iter().all(|part| part.windows(2).all(|pair| pair[0] == pair[1]))
            })
        })
        .collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
}

#[test]
fn alignment_growth_and_the_end_of_the_block() {
    let arena = Box::leak(Box::new(arena::Arena::empty()));
    let layout = |size, align| Layout::from_size_align(size, align).unwrap();
    // SAFETY: every part is used within its layout, and given back with it.
    unsafe {
        let odd = arena.alloc(layout(3, 1));
        let aligned = arena.alloc(layout(100, 64));
        assert_eq!(aligned as usize % 64, 0);
        assert!(aligned as usize >= odd as usize + 3);
        aligned.write_bytes(7, 100);

        let grown = arena.realloc(aligned, layout(100, 64), 1000);
        assert_eq!(grown, aligned, "the last part grows where it is");
        let after = arena.alloc(layout(8, 8));
        let moved = arena.realloc(grown, layout(1000, 64), 2000);
        assert_ne!(moved, grown, "a part with another one behind it cannot");
        assert!((0..100).all(|i| *moved.add(i) == 7));
        assert!(after as usize >= grown as usize + 1000);

        arena.dealloc(moved, layout(2000, 64));
        assert_eq!(arena.alloc(layout(10, 64)), moved, "the last part is given out again");

        let huge = arena.alloc(layout(1 << 20, 16));
        huge.write_bytes(1, 1 << 20);
        let huge = arena.realloc(huge, layout(1 << 20, 16), 2 << 20);
        assert_eq!(*huge.add((1 << 20) - 1), 1);
        arena.dealloc(huge, layout(2 << 20, 16));
        assert!(
            !arena.alloc(layout(8, 8)).is_null(),
            "what is too large takes nothing from the block"
        );
    }
}
