//! The size of the ring that the kernel writes packets into.

/// The memory of a ring, in bytes.
const BUDGET: u32 = 8 << 20;
/// The smallest and the largest snap length, in bytes.
const SNAP_LENGTHS: (u32, u32) = (64, 65_535);
/// The kernel rejects frames that are shorter than its own header, which has 68 bytes.
const LEAST_FRAME: u32 = 128;
/// The frames of a block. The kernel hands over one block at a time; packets are packed in it, regardless of the frame
/// size.
const FRAMES: u32 = 128;
/// The longest headers up to the TCP flags: 60 bytes of IPv4 with all options, and 14 of TCP.
const HEADERS: u32 = 74;

/// The sizes of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// The number of bytes captured of a packet.
    pub accepted: u32,
    /// The size of a frame in bytes, a power of two.
    pub frame: u32,
    /// The size of a block in bytes.
    pub block: u32,
    /// The number of blocks.
    pub blocks: u32,
}

impl Geometry {
    /// Computes the ring for a snap length in bytes. The length is clamped to the allowed range.
    pub fn new(snap_length: u32) -> Self {
        let snap_length = snap_length.clamp(SNAP_LENGTHS.0, SNAP_LENGTHS.1);
        let frame = snap_length.next_power_of_two().max(LEAST_FRAME);
        let block = frame * FRAMES;
        Self { accepted: snap_length.max(HEADERS), frame, block, blocks: BUDGET / block }
    }

    /// The number of frames.
    pub fn frames(self) -> u32 {
        FRAMES * self.blocks
    }

    /// The size of the ring in bytes.
    pub fn bytes(self) -> usize {
        self.block as usize * self.blocks as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_snap_length_has_a_ring_of_eight_mebibytes() {
        for (snap_length, frame, block, blocks) in [
            (1600, 2048, 262_144, 32),
            (0, 128, 16_384, 512),
            (64, 128, 16_384, 512),
            (600, 1024, 131_072, 64),
            (1365, 2048, 262_144, 32),
            (2049, 4096, 524_288, 16),
            (4096, 4096, 524_288, 16),
            (65_535, 65_536, 8_388_608, 1),
            (u32::MAX, 65_536, 8_388_608, 1),
        ] {
            let geometry = Geometry::new(snap_length);
            assert_eq!(
                (geometry.frame, geometry.block, geometry.blocks),
                (frame, block, blocks),
                "{snap_length}"
            );
            assert_eq!(geometry.bytes(), 8 << 20, "{snap_length}");
            assert_eq!(geometry.frames() * frame, 8 << 20, "{snap_length}");
            assert!(geometry.accepted >= HEADERS && geometry.accepted <= 65_535, "{snap_length}");
            assert!(block.is_multiple_of(4096), "{snap_length}: blocks are whole pages");
        }
    }
}
