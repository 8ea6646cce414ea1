//! The address of the stream of a page: sealed, so that only the dashboard can write it.

use jiff::Timestamp;

use super::broadcast::{Since, Topic};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::session::Keys;

/// The purpose of the seal.
const PURPOSE: &str = "events";

/// Returns the address of the stream of these topics, for a page that was read at this time.
pub fn address(keys: &Keys, since: Since, topics: &[Topic]) -> String {
    let since = format!("{} {}", since.at.as_millisecond(), since.replica);
    let lines: Vec<String> = std::iter::once(since).chain(topics.iter().map(ToString::to_string)).collect();
    format!("{}?on={}", paths::EVENTS, keys.seal(PURPOSE, lines.join("\n").as_bytes()))
}

/// Returns the time and the topics of an address; `None` if the dashboard has not written it.
pub fn parse(keys: &Keys, on: &str) -> Option<(Since, Vec<Topic>)> {
    let text = String::from_utf8(keys.open(PURPOSE, on)?).ok()?;
    let (since, topics) = text.split_once('\n')?;
    let (at, replica) = since.split_once(' ')?;
    let at = Timestamp::from_millisecond(at.parse().ok()?).ok()?;
    let topics = topics.lines().filter_map(|line| line.parse().ok()).collect();
    Some((Since { at, replica: replica.parse().ok()? }, topics))
}
