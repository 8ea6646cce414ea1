//! Durations as text.

/// Seconds in the notation of Go, which statuses and events use: `45s`, `1m30s`, `26h3m4s`.
pub fn go_duration(seconds: i64) -> String {
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, minutes) => format!("{minutes}m{rest}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_as_in_go() {
        for (seconds, text) in
            [(0, "0s"), (59, "59s"), (240, "4m0s"), (3661, "1h1m1s"), (7200, "2h0m0s"), (90_000, "25h0m0s")]
        {
            assert_eq!(go_duration(seconds), text);
        }
    }
}
