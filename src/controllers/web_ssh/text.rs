//! The output of a shell as text.

/// The maximum output in a message in bytes, the same as in the first web terminal.
const LONGEST: usize = 1_024;

/// Splits output into pieces of text. A character that is cut by the end of a piece, or by the end of the available
/// output, goes into the next piece. Bytes that are not UTF-8 become U+FFFD.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Output that is not in a piece yet. It exceeds `LONGEST` only while pieces are taken.
    bytes: Vec<u8>,
}

impl Pieces {
    /// Adds output.
    pub fn push(&mut self, output: &[u8]) {
        self.bytes.extend_from_slice(output);
    }

    /// Takes the complete pieces.
    pub fn take(&mut self) -> Vec<String> {
        let bytes = std::mem::take(&mut self.bytes);
        let mut pieces = Vec::with_capacity(bytes.len() / LONGEST + 1);
        let mut rest = bytes.as_slice();
        loop {
            let piece = &rest[..rest.len().min(LONGEST)];
            let (piece, _) = piece.split_at(piece.len() - unfinished(piece));
            if piece.is_empty() {
                break;
            }
            pieces.push(String::from_utf8_lossy(piece).into_owned());
            rest = &rest[piece.len()..];
        }
        self.bytes = rest.to_vec();
        pieces
    }

    /// The rest after the shell has ended: an incomplete character, as U+FFFD.
    pub fn rest(self) -> Option<String> {
        (!self.bytes.is_empty()).then(|| String::from_utf8_lossy(&self.bytes).into_owned())
    }
}

/// The number of bytes at the end of `piece` that begin an incomplete character.
fn unfinished(piece: &[u8]) -> usize {
    let is_continuation = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let continuations = piece.iter().rev().take(3).take_while(|byte| is_continuation(byte)).count();
    let length = continuations + 1;
    let first = piece.len().checked_sub(length).and_then(|at| piece.get(at));
    let needed = match first {
        Some(0b1100_0000..=0b1101_1111) => 2,
        Some(0b1110_0000..=0b1110_1111) => 3,
        Some(0b1111_0000..=0b1111_0111) => 4,
        _ => 1,
    };
    if needed > length { length } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(arrivals: &[&[u8]]) -> Vec<String> {
        let mut pieces = Pieces::default();
        let mut all = Vec::new();
        for output in arrivals {
            pieces.push(output);
            all.extend(pieces.take());
        }
        all.extend(pieces.rest());
        all
    }

    #[test]
    fn a_character_on_the_cut_goes_into_the_next_piece() {
        let text = format!("{}€{}", "a".repeat(1_022), "b".repeat(10));
        let expected = ["a".repeat(1_022), format!("€{}", "b".repeat(10))];
        assert_eq!(pieces(&[text.as_bytes()]), expected);
        assert_eq!(pieces(&[b"\xf0\x9f", b"\x98", b"\x80!"]), ["😀!"], "one that arrives in three parts");
        assert_eq!(pieces(&[&[b'x'; 2_048]]).iter().map(String::len).collect::<Vec<_>>(), [1_024, 1_024]);
    }

    #[test]
    fn invalid_bytes_are_replaced_and_do_not_delay_output() {
        assert_eq!(pieces(&[b"a\xffb"]), ["a\u{fffd}b"]);
        assert_eq!(pieces(&[b"\x80\x80\x80\x80\x80"]), ["\u{fffd}".repeat(5)]);
        assert_eq!(pieces(&[b"a\xe2\x82"]), ["a", "\u{fffd}"], "the shell ended within a character");
        assert_eq!(pieces(&[b""]), [""; 0]);
    }

    /// Characters of each length, and invalid bytes.
    const PARTS: [&[u8]; 8] =
        [b"a", b"\xc3\xa9", "€".as_bytes(), "😀".as_bytes(), b"\x80", b"\xe2\x82", b"\xf0\x9f\x98", b"\xff"];

    proptest! {
        #[test]
        fn pieces_are_the_text_of_the_whole(
            parts in proptest::collection::vec((0..PARTS.len(), prop_oneof![1_usize..4, 1_usize..400]), 0..30),
            cuts in proptest::collection::vec(1_usize..3_000, 1..20),
        ) {
            let text: Vec<u8> = parts.iter().flat_map(|(part, times)| PARTS[*part].repeat(*times)).collect();
            let mut rest = text.as_slice();
            let mut arrivals = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (arrival, more) = rest.split_at((*cut).min(rest.len()));
                arrivals.push(arrival);
                rest = more;
            }
            let pieces = pieces(&arrivals);
            prop_assert_eq!(pieces.concat(), String::from_utf8_lossy(&text).into_owned());
            // U+FFFD takes three bytes and replaces at least one.
            prop_assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= 3 * LONGEST));
        }
    }
}
