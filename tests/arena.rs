//! The static helper's own memory, tried as any program might use it.

#![allow(clippy::unwrap_used)] // a test fails by panicking

#[path = "../src/bin/nfsrahead/arena.rs"]
mod arena;

use arena::Arena;

const STEPS: usize = 20_000;

/// A piece and what was written all over it.
struct Piece {
    at: *mut u8,
    size: usize,
    mark: u8,
}

impl Piece {
    fn new(arena: &Arena, size: usize, mark: u8) -> Piece {
        let at = arena.allocate(size);
        Piece { at, size, mark }.filled()
    }

    fn resized(self, arena: &Arena, size: usize, mark: u8) -> Piece {
        // SAFETY: the piece is in use, and this value, the only one that has it, is gone.
        let at = unsafe { arena.resize(self.at, size) };
        let kept = Piece {
            at,
            size: size.min(self.size),
            ..self
        };
        kept.check();
        Piece { at, size, mark }.filled()
    }

    fn filled(self) -> Piece {
        assert!(!self.at.is_null() && self.at.addr() % 16 == 0);
        // SAFETY: the arena gave at least `size` bytes.
        unsafe { self.at.write_bytes(self.mark, self.size) };
        self
    }

    fn check(&self) {
        // SAFETY: as many bytes were filled in.
        let bytes = unsafe { std::slice::from_raw_parts(self.at, self.size) };
        assert!(bytes.iter().all(|b| *b == self.mark), "somebody wrote to a piece");
    }

    fn release(self, arena: &Arena) {
        self.check();
        // SAFETY: the piece is in use, and this value, the only one that has it, is gone.
        unsafe { arena.release(self.at) };
    }
}

/// Pieces of all sizes, some larger than the block that the arena starts with, come, change and go.
fn churn(arena: &Arena, mut random: u64) {
    let mut below = |n: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % n as u64).unwrap()
    };
    let mut pieces: Vec<Piece> = Vec::new();
    for step in 0..STEPS {
        let bits = below(if step % 500 == 0 { 20 } else { 12 });
        let size = below(1 << bits);
        let mark = u8::try_from(below(256)).unwrap();
        match below(4) {
            0 if !pieces.is_empty() => {
                let i = below(pieces.len());
                pieces.swap_remove(i).release(arena);
            }
            1 if !pieces.is_empty() => {
                let i = below(pieces.len());
                let piece = pieces.swap_remove(i);
                pieces.push(piece.resized(arena, size, mark));
            }
            _ if pieces.len() < 200 => pieces.push(Piece::new(arena, size, mark)),
            _ => pieces.remove(0).release(arena),
        }
    }
    pieces.into_iter().for_each(|piece| piece.release(arena));
}

#[test]
fn pieces_keep_what_is_in_them() {
    static ARENA: Arena = Arena::new();
    churn(&ARENA, 0x9e37_79b9_7f4a_7c15);
}

#[test]
fn threads_do_not_disturb_each_other() {
    static ARENA: Arena = Arena::new();
    std::thread::scope(|scope| {
        for seed in 1..=3 {
            scope.spawn(move || churn(&ARENA, seed));
        }
    });
}

#[test]
fn what_is_given_back_is_used_again() {
    static ARENA: Arena = Arena::new();
    let other = Piece::new(&ARENA, 64 << 10, 1);
    let first = Piece::new(&ARENA, 64 << 10, 2);
    let at = first.at;
    first.release(&ARENA);
    let later = Piece::new(&ARENA, 100 << 10, 3);
    assert_eq!(later.at, at, "a loop that reads again and again would grow");
    later.release(&ARENA);
    other.release(&ARENA);
}

#[test]
fn what_nobody_has_is_refused() {
    static ARENA: Arena = Arena::new();
    let piece = Piece::new(&ARENA, 100, 7);
    for size in [usize::MAX, usize::MAX - 15, usize::MAX / 2 + 1, 1 << 62] {
        assert!(ARENA.allocate(size).is_null());
        // SAFETY: the piece is in use, and stays so where there is no larger one.
        assert!(unsafe { ARENA.resize(piece.at, size) }.is_null());
    }
    piece.release(&ARENA);
}
