//! Counting a packet allocates nothing.
#![allow(unsafe_code, reason = "an allocator that counts the requests to the system allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;

use etherparse::PacketBuilder;

use super::reference::{PORT, TRACKED, outgoing};
use crate::capture::ConnectionCounter;
use crate::capture::packet::{IPV4, attempt};
use crate::capture::repeats::Repeats;
use crate::runtime::{ObjectKey, clock};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system allocator, with a count of the calls of each thread.
struct Counting;

impl Counting {
    fn count() {
        // The counter of a thread that ends is already destroyed.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    }
}

// SAFETY: every call is passed unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: the caller upholds the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count();
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocations of this thread during some work.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn a_packet_allocates_nothing() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1_u8]))), 1, "allocations are counted");
    let counter = ConnectionCounter::new("bastion_ssh_connections", "SSH connections");
    let one = ObjectKey::new("tenant-ada", "one");
    counter.set_resolver(Arc::new(move |_| Some(one.clone())));
    let mut repeats = Repeats::new(Instant::now());
    let packets: Vec<Vec<u8>> = (0..10_000_u32)
        .map(|sequence| {
            let destination = Ipv4Addr::from(0x0a00_0000 + sequence % 8);
            let start = PacketBuilder::ipv4([10, 9, 0, 1], destination.octets(), 64);
            let step = start.tcp(40_000, PORT, sequence, 1_000);
            let mut bytes = Vec::new();
            // Every second packet belongs to an open connection.
            let step = if sequence % 2 == 0 { step.syn() } else { step.ack(1) };
            step.write(&mut bytes, &[]).expect("written");
            bytes
        })
        .collect();
    let mut count = |packets: &[Vec<u8>]| {
        let (now, time) = (Instant::now(), clock::stated());
        for attempt in packets.iter().filter_map(|bytes| attempt(&outgoing(IPV4, bytes), TRACKED)) {
            if repeats.is_first(&attempt, now) {
                counter.count_at(attempt.destination, time);
            }
        }
    };
    // The first connection to a destination creates its series.
    let (first, others) = packets.split_at(8);
    count(first);
    assert_eq!(allocations(|| count(others)), 0);
    let mut text = String::new();
    counter.render(&mut text);
    counter.render(&mut text);
    assert!(text.contains(r#"instance="one"} 5000"#), "{text}");
}
