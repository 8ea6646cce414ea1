//! The log: text or JSON on standard error, with a filter that can be changed while the daemon runs.

use std::fmt;
use std::sync::Arc;

use tracing::Subscriber;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

#[cfg(feature = "otlp")]
use super::traces::Spans;
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

/// The log of the process.
#[derive(Debug)]
pub struct Logging {
    /// Its filter.
    pub filter: LogFilter,
    /// The spans to be sent; `None` where no endpoint is configured.
    #[cfg(feature = "otlp")]
    pub spans: Option<Spans>,
}

/// Starts logging to standard error, and with an endpoint for traces collects their spans.
///
/// # Errors
/// If the filter cannot be parsed, or logging was started before.
pub fn start(log: &Log) -> anyhow::Result<Logging> {
    let (filter, handle) = reload::Layer::new(EnvFilter::try_new(&log.filter)?);
    let set = LogFilter { set: Arc::new(move |filter| handle.reload(filter)) };
    #[cfg(feature = "otlp")]
    if !log.traces.endpoint.is_empty() {
        // Spans do not depend on the filter, which is for the lines of the log alone here.
        let (traces, spans) = super::traces::layer(&log.traces);
        Registry::default().with(lines(log).with_filter(filter)).with(traces).try_init()?;
        return Ok(Logging { filter: set, spans: Some(spans) });
    }
    Registry::default().with(filter).with(lines(log)).try_init()?;
    Ok(Logging {
        filter: set,
        #[cfg(feature = "otlp")]
        spans: None,
    })
}

/// The layer that writes lines.
fn lines<S>(log: &Log) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match log.format {
        LogFormat::Json => layer.json().with_current_span(true).with_span_list(false).boxed(),
        LogFormat::Text => layer.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed(),
    }
}
