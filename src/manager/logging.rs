//! The log: text or JSON on standard error, with a filter that can be changed while the daemon runs.

use std::io::{self, Write};

use tracing::Subscriber;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::api::shown;
use crate::config::{Log, LogFormat};

/// A handle to the filter of the log.
#[derive(Debug, Clone)]
pub struct LogFilter(reload::Handle<EnvFilter, Registry>);

impl LogFilter {
    /// Replaces the filter, for example by `info,crownlabs::runtime=debug`.
    ///
    /// # Errors
    /// If the directives cannot be parsed. The filter is unchanged then.
    pub fn set(&self, directives: &str) -> anyhow::Result<()> {
        Ok(self.0.reload(filter(directives)?)?)
    }
}

/// Starts logging to standard error; returns its filter.
///
/// # Errors
/// If the filter cannot be parsed, or logging was started before.
pub fn start(log: &Log) -> anyhow::Result<LogFilter> {
    let (filter, handle) = reload::Layer::new(filter(&log.filter)?);
    Registry::default().with(filter).with(lines(log.format, io::stderr)).try_init()?;
    Ok(LogFilter(handle))
}

/// Returns the filter with these directives. `kube` logs each failed request as an error, without its URL. The daemon logs
/// the same failure with its consequences, so these lines are off unless the directives name `kube_client`.
fn filter(directives: &str) -> anyhow::Result<EnvFilter> {
    let filter = EnvFilter::try_new(directives)?;
    if directives.contains("kube_client") {
        return Ok(filter);
    }
    Ok(filter.add_directive("kube_client::client::builder=off".parse()?))
}

/// The layer that writes lines to the writer that `to` returns. Lines have no colours, because colour codes begin with
/// the escape character, which must not appear in the log.
fn lines<S, W>(format: LogFormat, to: fn() -> W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: Write + 'static,
{
    let escape = match format {
        LogFormat::Json => |line: &str| shown::escaped_json(line).into_owned(),
        LogFormat::Text => |line: &str| shown::escaped(line).into_owned(),
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(move || Lines { to: to(), escape });
    match format {
        LogFormat::Json => lines.json().with_current_span(true).with_span_list(false).boxed(),
        LogFormat::Text => lines.boxed(),
    }
}

/// Writes each event, received in a single call, on one line and without control characters.
struct Lines<W> {
    to: W,
    escape: fn(&str) -> String,
}

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = (self.escape)(text.strip_suffix('\n').unwrap_or(&text));
        self.to.write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
pub mod tests {
    use std::cell::RefCell;

    use tracing::{info, info_span};

    use super::*;

    thread_local! {
        static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }

    struct Written;

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            WRITTEN.with_borrow_mut(|written| written.extend_from_slice(bytes));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the output of `log` in a format.
    pub fn logged(format: LogFormat, log: impl FnOnce()) -> String {
        let subscriber = Registry::default().with(lines(format, || Written));
        tracing::subscriber::with_default(subscriber, log);
        String::from_utf8(WRITTEN.take()).expect("text")
    }

    #[test]
    fn failed_requests_of_kube_are_logged_only_if_the_filter_names_its_target() {
        for (directives, expected) in [
            ("info", false),
            ("debug", false),
            ("debug,crownlabs=trace", false),
            ("info,kube_client=error", true),
            ("info,kube_client=off", false),
        ] {
            let lines = lines(LogFormat::Text, || Written);
            let subscriber = Registry::default().with(filter(directives).expect("valid")).with(lines);
            tracing::subscriber::with_default(subscriber, || {
                tracing::error!(target: "kube_client::client::builder", "failed with error x");
                tracing::error!("one of the daemon");
            });
            let log = String::from_utf8(WRITTEN.take()).expect("text");
            assert_eq!(log.contains("failed with error x"), expected, "{directives}: {log}");
            assert!(log.contains("one of the daemon"), "{directives}: {log}");
        }
    }

    #[test]
    fn an_event_is_one_line_without_control_characters() {
        let text = "a\u{1b}]0;title\u{7}\r\n2026 INFO forged\u{9b}2J\u{202e}\u{2028}\u{7f}b";
        let event = || {
            let _span = info_span!("reconcile", object = text).entered();
            let error = io::Error::other(text);
            info!(name = text, shown = %text, debug = ?text, error = &error as &dyn std::error::Error, "{text}");
        };
        for format in [LogFormat::Text, LogFormat::Json] {
            let line = logged(format, event);
            let line = line.strip_suffix('\n').expect("a line");
            assert!(!line.contains(shown::is_control), "{format:?} {line:?}");
            assert_eq!(line.matches("forged").count(), 6, "{format:?} {line:?}");
            if format == LogFormat::Json {
                let read: serde_json::Value = serde_json::from_str(line).expect("JSON");
                assert_eq!(
                    (&read["fields"]["message"], &read["span"]["object"]),
                    (&text.into(), &text.into())
                );
            }
        }
    }
}
