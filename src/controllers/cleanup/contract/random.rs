//! Random numbers for the plans of faults.

/// A small generator of random numbers (splitmix64), so that a seed names a plan.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A number of seconds below a limit.
    pub fn seconds(&mut self, limit: i64) -> i64 {
        i64::try_from(self.below(limit.unsigned_abs())).expect("below the limit")
    }

    /// One of these values.
    pub fn one_of<T: Copy, const N: usize>(&mut self, all: [T; N]) -> T {
        all[usize::try_from(self.below(N as u64)).expect("small")]
    }

    /// True with a probability of one in `number`.
    pub fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }
}
