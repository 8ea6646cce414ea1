//! The log: text or JSON on standard error, with a filter that can be changed while the daemon runs.

use std::fmt;
use std::sync::Arc;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use crate::config::{Log, LogFormat};

type Set = Arc<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>;

/// A handle to the filter of the log.
#[derive(Clone)]
pub struct LogFilter {
    set: Set,
}

impl fmt::Debug for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogFilter")
    }
}

impl LogFilter {
    /// Replaces the filter, for example by `info,crownlabs::runtime=debug`.
    ///
    /// # Errors
    /// If the directives cannot be parsed; the filter is unchanged then.
    pub fn set(&self, directives: &str) -> anyhow::Result<()> {
        (self.set)(EnvFilter::try_new(directives)?)?;
        Ok(())
    }
}

/// Starts logging to standard error.
///
/// # Errors
/// If the filter cannot be parsed, or logging was started before.
pub fn start(log: &Log) -> anyhow::Result<LogFilter> {
    let (filter, handle) = reload::Layer::new(EnvFilter::try_new(&log.filter)?);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer: Box<dyn Layer<_> + Send + Sync> = match log.format {
        LogFormat::Json => layer.json().with_current_span(true).with_span_list(false).boxed(),
        LogFormat::Text => layer.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
    };
    Registry::default().with(filter).with(layer).try_init()?;
    Ok(LogFilter { set: Arc::new(move |filter| handle.reload(filter)) })
}
