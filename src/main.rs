//! The command line: parses, calls, exits.

#[cfg(test)]
mod command_line;
#[cfg(test)]
mod reference;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use crownlabs::{ClusterOptions, Config, ConfigError, Findings, Format, Output, Surroundings};
#[cfg(feature = "daemon")]
use crownlabs::{LostLease, Options};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The version, and the commit of its source.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CROWNLABS_REVISION"), ")");

/// One daemon that runs every control loop of a CrownLabs cluster.
#[derive(Parser)]
#[command(name = "crownlabs", version = VERSION, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the control loops until SIGTERM.
    #[cfg(feature = "daemon")]
    Run {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// The cluster; else KUBECONFIG, else that of the pod.
        #[arg(long, value_name = "FILE")]
        kubeconfig: Option<PathBuf>,
    },
    /// Print the objects that the loops would make for the custom resources in files; or what they would write in a cluster.
    /// Nothing is written.
    Plan(PlanArguments),
    /// Say what an Instance waits for, on which object and since when; what happens to it next; and who may end it.
    Why {
        /// Its name; before it, with a slash, its namespace may be named.
        #[arg(value_name = "[NAMESPACE/]INSTANCE")]
        instance: String,
        /// Its namespace; else that of the context.
        #[arg(short, long, value_name = "NAME")]
        namespace: Option<String>,
        #[command(flatten)]
        cluster: ClusterArguments,
        #[command(flatten)]
        output: OutputArguments,
    },
    /// List who runs what in a course, idle for how long, and how many cores that holds.
    Status {
        /// The name of the Workspace.
        workspace: String,
        /// List only the Instances in this namespace.
        #[arg(short, long, value_name = "NAME")]
        namespace: Option<String>,
        #[command(flatten)]
        cluster: ClusterArguments,
        #[command(flatten)]
        output: OutputArguments,
    },
    /// Move from the Go operators.
    #[command(subcommand)]
    Takeover(TakeoverCommand),
    /// Print the custom resource definitions.
    Crd {
        /// What the processor cores in quotas may be: whole numbers, as the newest dashboard and its relay expect, or amounts
        /// such as 500m, too.
        #[arg(long, value_name = "TYPE", value_parser = ["integer", "intOrString"], default_value = "intOrString")]
        quota_cpu: String,
    },
    /// Print, check or describe the configuration file.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Write the man pages, one for each command.
    Man {
        /// The folder; it is made if there is none.
        folder: PathBuf,
    },
    /// Print the completion script of a shell.
    Completion {
        /// The shell.
        shell: Shell,
    },
}

#[derive(Subcommand)]
enum TakeoverCommand {
    /// Read a cluster that the Go operators run, and print what the daemon would change there and what stands in its way.
    /// Nothing is written. Exits with 4 if anything stands in the way.
    Check {
        /// The configuration file, or a ConfigMap manifest that contains it; else the defaults.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        #[command(flatten)]
        cluster: ClusterArguments,
        #[command(flatten)]
        output: OutputArguments,
    },
}

/// The cluster that a command reads.
#[derive(Args)]
struct ClusterArguments {
    /// The cluster; else KUBECONFIG, else ~/.kube/config, else that of the pod.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; else its current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl ClusterArguments {
    fn options(self, namespace: Option<String>) -> ClusterOptions {
        ClusterOptions { kubeconfig: self.kubeconfig, context: self.context, namespace }
    }
}

/// How a command prints.
#[derive(Args)]
struct OutputArguments {
    /// Print for programs instead of people.
    #[arg(short, long, value_name = "FORMAT", value_parser = format())]
    output: Option<Format>,
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["json", "yaml"])
        .map(|name| if name == "json" { Format::Json } else { Format::Yaml })
}

#[derive(Args)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["file", "kubeconfig", "context"])))]
struct PlanArguments {
    /// Files with custom resources in YAML or JSON, and folders of them; - is standard input. Exits with 2 if something
    /// cannot be made.
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..)]
    file: Vec<PathBuf>,
    /// Exit with 0, although something in the files cannot be made.
    #[arg(long, requires = "file")]
    allow_problems: bool,
    /// A cluster. With files, its Workspaces, Tenants, Templates and volumes are known, too; without, what the loops
    /// would write in it now is printed, field by field, and the command exits with 4 if that is anything.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, which may be that of KUBECONFIG or ~/.kube/config; else its current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// With files, the namespace of objects that name none; without, print only what is written for objects in this one.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// The configuration file, or a ConfigMap manifest that contains it; else the defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print the default file: every key, its default, and what it means.
    Default,
    /// Check a file; every fault is named with its line, and a warning is no fault.
    Check {
        /// The file, or a ConfigMap manifest that contains it.
        file: PathBuf,
    },
    /// Print the JSON Schema of the file.
    Schema,
    /// Print the values of the daemon's chart that say what those of the chart with the Go operators say. What has no place
    /// there, and what is left to do, is on standard error.
    FromValues {
        /// The values, as "helm get values RELEASE --all -o yaml" prints them; - is standard input.
        file: PathBuf,
        /// Print the configuration file alone, for those who do not use the chart.
        #[arg(long)]
        configuration: bool,
        /// The namespace of the operators' release, in which their Gateway is.
        #[arg(short, long, value_name = "NAMESPACE")]
        namespace: Option<String>,
    },
}

/// How long the end of the process waits for calls of the operating system that are under way.
const LAST_THREADS: Duration = Duration::from_millis(500);

/// The exit code of a command that looks for something and has found it; 1 is for errors, and 2 for a command line that is
/// not understood.
const EXIT_FOUND: u8 = 4;

/// The exit code of `plan -f` if something in the files cannot be made.
const EXIT_REFUSED: u8 = 2;

/// The arguments. Under the name `kubectl-crownlabs`, the binary is a plugin of `kubectl`, which calls it as `kubectl crownlabs`.
fn arguments() -> Arguments {
    let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let is_plugin = program.file_stem().is_some_and(|name| name == "kubectl-crownlabs");
    let command = Arguments::command();
    let command = if is_plugin { command.bin_name("kubectl crownlabs") } else { command };
    Arguments::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
}

fn main() -> ExitCode {
    match execute(arguments().command) {
        Ok(code) => code,
        Err(error) => {
            if error.is::<ConfigError>() {
                // A line a fault, each with its place, as compilers print them.
                say(&format!("{error}"));
            } else {
                say(&format!("crownlabs: {error:#}"));
            }
            #[cfg(feature = "daemon")]
            if error.is::<LostLease>() {
                return ExitCode::from(crownlabs::EXIT_LEASE_LOST);
            }
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        #[cfg(feature = "daemon")]
        Command::Run { config: file, kubeconfig } => {
            let config = Config::load(&file)?;
            let log = crownlabs::start_logging(&config.log)?;
            let options = Options { config, config_file: file, kubeconfig, log };
            block_on(crownlabs::run(options))?;
        }
        Command::Plan(arguments) => return plan(arguments),
        Command::Takeover(TakeoverCommand::Check { config, cluster, output }) => {
            let (config, cluster) = (configuration(config)?, cluster.options(None));
            return print_findings(&block_on(crownlabs::takeover(&config, &cluster, output.output))?);
        }
        Command::Why { instance, namespace, cluster, output } => {
            print(&block_on(crownlabs::why(&instance, &cluster.options(namespace), output.output))?)?;
        }
        Command::Status { workspace, namespace, cluster, output } => {
            print(&block_on(crownlabs::status(&workspace, &cluster.options(namespace), output.output))?)?;
        }
        Command::Crd { quota_cpu } => print(&crownlabs::crds(quota_cpu == "integer"))?,
        Command::Config(ConfigCommand::Default) => print(&crownlabs::default_configuration())?,
        Command::Config(ConfigCommand::Check { file }) => {
            for warning in Config::load_any(&file)?.warnings() {
                say(&format!("{}: warning: {warning}", file.display()));
            }
            print(&format!("{} is valid\n", file.display()))?;
        }
        Command::Config(ConfigCommand::FromValues { file, configuration, namespace }) => {
            let text = read_text(&file).with_context(|| format!("{} cannot be read", file.display()))?;
            let made = if configuration { crownlabs::Made::Configuration } else { crownlabs::Made::Chart };
            let made = crownlabs::from_values(&text, made, namespace.as_deref())
                .map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
            for message in &made.messages {
                say(message);
            }
            print(&made.yaml)?;
        }
        Command::Config(ConfigCommand::Schema) => {
            print(&format!("{:#}\n", crownlabs::configuration_schema()))?;
        }
        Command::Man { folder } => write_man_pages(&folder)
            .with_context(|| format!("the man pages cannot be written into {}", folder.display()))?,
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "crownlabs", &mut script);
            write(&script)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn plan(arguments: PlanArguments) -> anyhow::Result<ExitCode> {
    let PlanArguments { file, allow_problems, kubeconfig, context, namespace, config, output } = arguments;
    let (config, format) = (configuration(config)?, output.output);
    let is_alone = kubeconfig.is_none() && context.is_none();
    let cluster = ClusterOptions { kubeconfig, context, namespace };
    if file.is_empty() {
        return print_findings(&block_on(crownlabs::changes(&config, &cluster, format))?);
    }
    let planned: Output = if is_alone {
        let around = Surroundings { namespace: cluster.namespace, ..Surroundings::default() };
        crownlabs::plan_with(&file, &config, around)?
    } else {
        block_on(crownlabs::plan_beside(&file, &config, &cluster))?
    };
    for message in &planned.messages {
        say(message);
    }
    print(&planned.text(format.unwrap_or(Format::Yaml))?)?;
    let is_refused = planned.is_refused && !allow_problems;
    Ok(if is_refused { ExitCode::from(EXIT_REFUSED) } else { ExitCode::SUCCESS })
}

/// The text of a file; `-` is standard input.
fn read_text(file: &Path) -> std::io::Result<String> {
    if file == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(file)
    }
}

/// The configuration in a file, or the defaults.
fn configuration(file: Option<PathBuf>) -> Result<Config, ConfigError> {
    file.map_or_else(|| Ok(Config::default()), |file| Config::load_any(&file))
}

/// Runs a future to its end.
fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // The loops wait for the API server; handing work from thread to thread costs more
        // than a second thread would gain (`make bench`).
        .worker_threads(1)
        .enable_all()
        .build()
        .context("the runtime cannot start")?;
    let result = runtime.block_on(future);
    // A thread that waits for a name server, for example, does not delay the end.
    runtime.shutdown_timeout(LAST_THREADS);
    result
}

fn print_findings(findings: &Findings) -> anyhow::Result<ExitCode> {
    print(&findings.text)?;
    Ok(if findings.is_clean { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) })
}

fn write_man_pages(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Arguments::command().disable_help_subcommand(true), folder)
}

/// Prints. Others have written some of it, so control characters are written out.
fn print(text: &str) -> anyhow::Result<()> {
    write(crownlabs::escaped_lines(text).as_bytes())
}

/// Says something on standard error, in the same way.
fn say(text: &str) {
    eprintln!("{}", crownlabs::escaped_lines(text));
}

/// Writes to standard output. A closed pipe (`crownlabs crd | head`) ends the output and is no error.
fn write(text: &[u8]) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("standard output cannot be written")
        }
        _ => Ok(()),
    }
}
