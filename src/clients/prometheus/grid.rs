//! The points in time that evaluate a window, and the division of the window into one part for each query.
//!
//! Points are multiples of the step since 1970, so that the same use has the same time in every round.
//! Prometheus evaluates a subquery at the same points.

use jiff::Timestamp;

/// The limit for the parts of a window. Each part is one request for a source with a counter. In total there are at
/// most 60 requests: for each of the three sources with a counter, one for each part and three more; for the source
/// with a gauge, [`FEWER_PARTS`] and three more; one for health; and one that is repeated if only GET is allowed.
pub(super) const MOST_PARTS: i64 = 15;
/// The same limit for a source with a gauge. It has little data: only open connections have samples, and each sample
/// is decoded once.
pub(super) const FEWER_PARTS: i64 = 4;
/// The limit for the points of a part. With 5,000 series that have several values each at a time, the query stays
/// well below the 50,000,000 samples that Prometheus keeps in memory for a query by default.
const MOST_POINTS: i64 = 273;
/// The shortest part that is worth a separate request, in seconds.
const SHORTEST_PART: i64 = 6 * 3_600;
/// The number of points of a window in addition to its length divided by the step.
const MARGIN: i64 = 3;
/// The longest gap in the samples of a series (in addition to a step) that does not split it into two series, in
/// seconds. Failed scrapes and a restart of Prometheus take minutes.
const LONGEST_GAP: i64 = 30 * 60;

/// The points of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    /// The distance between two points, in seconds.
    pub step: i64,
    /// The first point, at or before the start of the window, in seconds since 1970.
    pub first: i64,
    /// The last point, at or after the end of the window.
    pub last: i64,
    /// The last point that is not in the future.
    pub last_past: i64,
}

/// The first and the last point of a range, in seconds.
pub(super) type Beginning = (i64, i64);

/// Successive points of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The first point.
    pub first: i64,
    /// The last point.
    pub last: i64,
}

impl Grid {
    /// The points of the window from `since` to `now`. The step is the smallest multiple of `step` (in seconds) that
    /// keeps the number of points below the limit. The step before the first point belongs to the window, because
    /// samples can arrive after the round that expected them.
    pub fn new(since: Timestamp, now: Timestamp, step: i64) -> Self {
        let step = step.max(1);
        let end = now.as_second().max(0);
        let begin = since.as_second().clamp(0, end);
        // A fraction of a second at the end counts as a whole second.
        let end = if now.subsec_nanosecond() > 0 { end + 1 } else { end };
        let longest = step * (MOST_PARTS * MOST_POINTS - MARGIN);
        let step = step * ((end - begin) / longest + 1);
        let first = begin / step * step;
        let last_past = now.as_second().max(0) / step * step;
        let last = (end + step - 1) / step * step;
        Self { step, first, last, last_past: last_past.max(first) }
    }

    /// How far before a point a value is searched for, in seconds.
    pub fn lookback(&self) -> i64 {
        LONGEST_GAP + self.step
    }

    /// Divides the window into at most `most` parts, newest first.
    pub fn parts(&self, most: i64) -> Vec<Part> {
        let points = (self.last - self.first) / self.step + 1;
        let length = points * self.step;
        let by_length = (length + SHORTEST_PART - 1) / SHORTEST_PART;
        let by_points = (points + MOST_POINTS - 1) / MOST_POINTS;
        let parts = by_length.max(by_points).clamp(1, most);
        let points_of_part = (points + parts - 1) / parts;
        let mut all = Vec::new();
        let mut last = self.last;
        while last >= self.first {
            let first = (last - (points_of_part - 1) * self.step).max(self.first);
            all.push(Part { first, last });
            last = first - self.step;
        }
        all
    }

    /// Returns ranges of points, as first and last point. A series that begins in one of them is taken to have
    /// existed before. `available` is the first point with data about the source; Prometheus has no data before it.
    /// Series of other scrape targets may begin one point earlier or later.
    pub fn beginnings(&self, available: Option<f64>) -> Vec<Beginning> {
        let window = (self.first, self.first + self.step);
        #[expect(clippy::cast_possible_truncation, reason = "it is a point of this grid")]
        match available.map(|time| time as i64) {
            Some(first) if first <= self.first => Vec::new(),
            Some(first) => vec![window, (first - self.step, first + self.step)],
            None => vec![window],
        }
    }

    /// The whole window except its future.
    pub fn past(&self) -> Part {
        Part { first: self.first, last: self.last_past }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::at;

    const NOW: i64 = 1_790_000_123;

    fn grid(window: i64, step: i64) -> Grid {
        Grid::new(at(NOW - window), at(NOW), step)
    }

    #[test]
    fn a_short_window_is_one_part_with_the_configured_step() {
        let grid = grid(3_600, 300);
        assert_eq!(
            grid,
            Grid { step: 300, first: 1_789_996_500, last: 1_790_000_400, last_past: 1_790_000_100 }
        );
        assert_eq!(grid.parts(MOST_PARTS), [Part { first: 1_789_996_500, last: 1_790_000_400 }]);
        assert_eq!(grid.lookback(), 2_100);
    }

    #[test]
    fn long_windows_have_longer_steps_and_at_most_15_parts() {
        let day = 86_400;
        let of = |window, step| {
            let grid = grid(window, step);
            (grid.step, grid.parts(MOST_PARTS).len())
        };
        assert_eq!(of(day, 300), (300, 5));
        assert_eq!(of(14 * day, 300), (300, 15));
        assert_eq!(of(15 * day, 300), (600, 15));
        assert_eq!(of(90 * day, 300), (2_100, 15));
        assert_eq!(of(90 * day, 30), (1_920, 15));
        // A window of four hours in steps of a second.
        assert_eq!(of(4 * 3_600, 1), (4, 14));
    }

    #[test]
    fn a_window_without_length_and_one_that_runs_backwards() {
        for since in [NOW, NOW + 1_000] {
            let grid = Grid::new(at(since), at(NOW), 300);
            assert_eq!((grid.first, grid.last), (1_790_000_100, 1_790_000_400));
        }
        let aligned = Grid::new(at(600), at(600), 300);
        assert_eq!(aligned, Grid { step: 300, first: 600, last: 600, last_past: 600 });
        assert_eq!(Grid::new(Timestamp::MIN, at(600), 300).first, 0);
        let fraction = at(600) + jiff::SignedDuration::from_millis(1);
        assert_eq!(Grid::new(at(600), fraction, 300).last, 900);
    }

    proptest! {
        #[test]
        fn parts_cover_the_window_once(
            window in 0..400 * 86_400_i64, now in 0..4_000_000_000_i64, step in 1..=3_600_i64
        ) {
            let (begin, end) = ((now - window).max(0), now);
            let grid = Grid::new(at(now - window), at(now), step);
            prop_assert!(grid.step % step == 0 && grid.first % grid.step == 0 && grid.last % grid.step == 0);
            prop_assert!(grid.first <= begin && begin < grid.first + grid.step);
            prop_assert!(end <= grid.last && grid.last < end + grid.step);
            prop_assert!(grid.first <= grid.last_past && grid.last_past <= end);
            for (most, points) in [(MOST_PARTS, MOST_POINTS), (FEWER_PARTS, MOST_POINTS * MOST_PARTS)] {
                let parts = grid.parts(most);
                prop_assert!(!parts.is_empty() && i64::try_from(parts.len()).unwrap() <= most);
                prop_assert_eq!(parts.first().unwrap().last, grid.last);
                prop_assert_eq!(parts.last().unwrap().first, grid.first);
                for part in &parts {
                    prop_assert!(part.first <= part.last && (part.last - part.first) / grid.step < points);
                }
                for pair in parts.windows(2) {
                    prop_assert_eq!(pair[1].last + grid.step, pair[0].first);
                }
            }
        }
    }
}
