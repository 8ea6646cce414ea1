//! Human-readable names for Instances whose users gave none: an adjective and a noun.

use crate::runtime::ObjectKey;
use crate::runtime::queue::spread;

const ADJECTIVES: [&str; 48] = [
    "Agile", "Amber", "Ancient", "Autumn", "Azure", "Bold", "Brave", "Bright", "Calm", "Clever", "Cosmic",
    "Crimson", "Curious", "Daring", "Eager", "Elegant", "Emerald", "Fancy", "Gentle", "Golden", "Happy",
    "Hidden", "Honest", "Icy", "Ivory", "Jolly", "Keen", "Kind", "Lively", "Lucky", "Mellow", "Mighty",
    "Misty", "Noble", "Patient", "Proud", "Quick", "Quiet", "Rapid", "Royal", "Silent", "Silver", "Solid",
    "Sunny", "Swift", "Vivid", "Wise", "Young",
];
const NOUNS: [&str; 48] = [
    "Badger", "Bear", "Breeze", "Brook", "Canyon", "Cloud", "Comet", "Coral", "Crane", "Dawn", "Desert",
    "Dolphin", "Eagle", "Ember", "Falcon", "Fern", "Fjord", "Forest", "Fox", "Galaxy", "Glacier", "Grove",
    "Harbor", "Hawk", "Heron", "Island", "Lagoon", "Lake", "Leaf", "Lynx", "Meadow", "Meteor", "Moon",
    "Mountain", "Nebula", "Ocean", "Orchid", "Otter", "Owl", "Panda", "Planet", "River", "Sparrow", "Star",
    "Tiger", "Valley", "Wave", "Willow",
];

/// The name for the Instance with this uid. It is the same at every call.
pub fn pretty_name(uid: &str) -> String {
    let key = ObjectKey::new("", uid);
    let pick = |words: &[&'static str], salt| {
        // `spread` is below 1, so the index is below the length.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let index = (spread(&key, salt) * words.len() as f64) as usize;
        words.get(index).copied().unwrap_or_default()
    };
    format!("{} {}", pick(&ADJECTIVES, 1), pick(&NOUNS, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_two_capitalised_words_and_depend_on_the_uid_alone() {
        let mut seen = std::collections::BTreeSet::new();
        for n in 0..200 {
            let name = pretty_name(&format!("uid-{n}"));
            assert_eq!(name, pretty_name(&format!("uid-{n}")));
            let words: Vec<&str> = name.split(' ').collect();
            assert_eq!(words.len(), 2, "{name}");
            assert!(words.iter().all(|word| word.starts_with(char::is_uppercase)), "{name}");
            seen.insert(name);
        }
        assert!(seen.len() > 150, "only {} different names of 200", seen.len());
    }
}
