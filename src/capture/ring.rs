//! The packet socket and the ring that it shares with the kernel (`packet(7)`, and the kernel's document
//! `networking/packet_mmap`). All `unsafe` code of the crate is in this file, except for one test.

#![allow(unsafe_code, reason = "system calls that no crate offers, and memory that the kernel writes")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_ptr_alignment,
    reason = "the constants of libc are larger than their fields; each cast states why the pointer is aligned"
)]

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libc::{c_int, c_uint, c_void, socklen_t};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, SockAddr, SockFilter, Socket, Type};

use super::block;
use super::geometry::Geometry;

/// The kernel hands over a block that has packets after this time, in milliseconds, even if it is not full.
const RETIREMENT: c_uint = 64;
/// All protocols, in network byte order: the protocol of sockets that see outgoing packets.
const ALL_PROTOCOLS: u16 = (libc::ETH_P_ALL as u16).to_be();

/// The kernel's counts since the last query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that passed the filter, including dropped ones.
    pub packets: u32,
    /// Packets that were dropped because the ring was full.
    pub drops: u32,
    /// The number of times the ring was full.
    pub freezes: u32,
}

/// Why [`Ring::wait`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// There may be packets.
    Packets,
    /// The other end of the pipe was closed.
    Stop,
    /// The socket has an error, for example because its interface was removed.
    Error,
}

/// A packet socket with its ring.
pub struct Ring {
    socket: Socket,
    memory: NonNull<u8>,
    geometry: Geometry,
    /// The block that the kernel hands over next.
    next: usize,
}

impl Ring {
    /// Starts to capture packets that pass `program` on an interface; 0 means all interfaces. The socket has no
    /// protocol, and sees no packets, until the filter and the ring are set up.
    ///
    /// # Errors
    /// `PermissionDenied` without the capability `NET_RAW`; `NetworkDown` while the interface is down.
    pub fn open(interface: c_uint, program: &[libc::sock_filter], geometry: Geometry) -> io::Result<Self> {
        // A datagram socket strips the link header, so devices without one (tunnels) are not a special case.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(0)))?;
        let filter = program.iter().map(|step| SockFilter::new(step.code, step.jt, step.jf, step.k));
        socket.attach_filter(&filter.collect::<Vec<_>>())?;
        set_option(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as c_int))?;
        let request = libc::tpacket_req3 {
            tp_block_size: geometry.block,
            tp_block_nr: geometry.blocks,
            tp_frame_size: geometry.frame,
            tp_frame_nr: geometry.frames(),
            tp_retire_blk_tov: RETIREMENT,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(&socket, libc::PACKET_RX_RING, &request)?;
        let memory = map(&socket, geometry.bytes())?;
        let ring = Self { socket, memory, geometry, next: 0 };
        ring.socket.bind(&address(interface)?)?;
        // The kernel also binds to an interface that is down, and reports that as an error of the socket.
        ring.error().map_or(Ok(ring), Err)
    }

    /// Waits until the kernel hands over a block, or until the other end of the pipe `stop` is closed.
    ///
    /// # Errors
    /// When the kernel cannot wait, for example because it is out of memory.
    pub fn wait(&self, stop: BorrowedFd<'_>) -> io::Result<Wake> {
        let socket = PollFd::new(self.socket.as_fd(), PollFlags::POLLIN);
        let [stop, socket] = awaited([PollFd::new(stop, PollFlags::empty()), socket], PollTimeout::NONE)?;
        Ok(match (stop.is_empty(), PollFlags::POLLIN.contains(socket)) {
            (true, true) => Wake::Packets,
            (true, false) => Wake::Error,
            (false, _) => Wake::Stop,
        })
    }

    /// Calls `read` with the next block if the kernel has handed it over, and returns the block to the kernel. Returns
    /// whether there was one.
    pub fn next_block(&mut self, read: impl FnOnce(&[u8])) -> bool {
        let size = self.geometry.block as usize;
        // SAFETY: `next` is below the number of blocks, so the whole block is in the mapping, which lives as long as
        // `self`.
        let begin = unsafe { self.memory.add(self.next * size) };
        // SAFETY: blocks are whole pages and the status is at a multiple of four bytes in the header of each, so it is
        // aligned. The kernel and we access it only atomically while both may.
        let status = unsafe { AtomicU32::from_ptr(begin.as_ptr().add(block::STATUS).cast()) };
        // Acquire: our reads of the block happen after the kernel's writes.
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the block is in the mapping, as above. The kernel does not write a block whose status is `USER`, and
        // no other code has the mapping, so the bytes do not change while the slice lives, which ends before the store.
        read(unsafe { slice::from_raw_parts(begin.as_ptr(), size) });
        // Release: the kernel's next writes happen after our reads.
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.geometry.blocks as usize;
        true
    }

    /// Returns the kernel's counts since the last call.
    ///
    /// # Errors
    /// The kernel documents no error.
    pub fn statistics(&self) -> io::Result<Statistics> {
        let mut counted = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = size_of::<libc::tpacket_stats_v3>() as socklen_t;
        let (socket, option, target) =
            (self.socket.as_raw_fd(), libc::PACKET_STATISTICS, (&raw mut counted).cast::<c_void>());
        // SAFETY: the kernel writes at most `length` bytes, which is the size of the structure.
        checked(unsafe { libc::getsockopt(socket, libc::SOL_PACKET, option, target, &raw mut length) })?;
        let libc::tpacket_stats_v3 { tp_packets, tp_drops, tp_freeze_q_cnt } = counted;
        Ok(Statistics { packets: tp_packets, drops: tp_drops, freezes: tp_freeze_q_cnt })
    }

    /// The error of the socket, if it has one.
    pub fn error(&self) -> Option<io::Error> {
        self.socket.take_error().unwrap_or_else(Some)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was created with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.geometry.bytes()) };
    }
}

/// Returns the index of an interface; `None` if it does not exist.
pub fn interface(name: &str) -> Option<c_uint> {
    let name = CString::new(name).ok()?;
    // SAFETY: the name ends with a zero and lives until the call returns.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// Waits until the other end of a pipe is closed. Returns false if it is still open after `limit`.
pub fn closes(stop: BorrowedFd<'_>, limit: Duration) -> bool {
    let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
    // If memory for waiting is short, the caller retries at once until the shortage ends.
    awaited([PollFd::new(stop, PollFlags::empty())], limit).is_ok_and(|[stop]| !stop.is_empty())
}

/// Waits for one of the events, or for a signal, and returns the events that occurred. Hang-ups and errors are always
/// awaited.
fn awaited<const COUNT: usize>(
    mut polled: [PollFd<'_>; COUNT],
    limit: PollTimeout,
) -> io::Result<[PollFlags; COUNT]> {
    match poll(&mut polled, limit) {
        // An event that nix does not know is an error.
        Ok(_) => Ok(polled.map(|polled| polled.revents().unwrap_or(PollFlags::POLLERR))),
        Err(Errno::EINTR) => Ok([PollFlags::empty(); COUNT]),
        Err(error) => Err(error.into()),
    }
}

/// Sets an option of a packet socket.
fn set_option<T>(socket: &Socket, option: c_int, value: &T) -> io::Result<()> {
    let (value, length) = (ptr::from_ref(value).cast::<c_void>(), size_of::<T>() as socklen_t);
    // SAFETY: the kernel reads at most `size_of::<T>()` bytes, which is the size of the value.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, value, length) })
}

/// Maps the ring of a socket.
fn map(socket: &Socket, length: usize) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses changes no memory that is in use.
    let memory =
        unsafe { libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(memory.cast()).ok_or_else(|| io::Error::other("the ring was mapped at the address 0"))
}

/// The socket address that binds a packet socket to an interface.
fn address(interface: c_uint) -> io::Result<SockAddr> {
    // SAFETY: a link address fits in the storage, which is zeroed and aligned for every kind of address; family,
    // protocol and interface make it valid for `bind`, and the length is the address's own.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            let link = storage.cast::<libc::sockaddr_ll>();
            (*link).sll_family = libc::AF_PACKET as libc::sa_family_t;
            (*link).sll_protocol = ALL_PROTOCOLS;
            (*link).sll_ifindex = interface.cast_signed();
            *length = size_of::<libc::sockaddr_ll>() as socklen_t;
            Ok(())
        })
    }?;
    Ok(address)
}

fn checked(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_is_closed_ends_the_wait() {
        let (stop, writer) = io::pipe().expect("a pipe");
        assert!(!closes(stop.as_fd(), Duration::from_millis(1)));
        drop(writer);
        assert!(closes(stop.as_fd(), Duration::from_mins(1)));
    }
}
