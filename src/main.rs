//! The command line: parses arguments, calls the modules, and sets the exit code.

#[cfg(test)]
mod command_line;
mod course;
mod examples;
mod inspect;
#[cfg(test)]
mod reference;
mod terminal;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use crownlabs::{
    ClusterOptions, Config, ConfigError, Findings, Format, Input, Output, Release, Surroundings, VERSION,
};
#[cfg(feature = "daemon")]
use crownlabs::{LostLease, Options};

use self::course::ClassArguments;
use self::inspect::{StatusArguments, VersionArguments, WhyArguments};
use self::terminal::{print, print_coloured, say, say_coloured, write};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One daemon that runs every control loop of a CrownLabs cluster.
#[derive(Parser)]
#[command(name = "crownlabs", version = VERSION, disable_version_flag = true)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(flatten)]
    version: VersionArguments,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the control loops until SIGTERM.
    #[cfg(feature = "daemon")]
    Run {
        /// The configuration file.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// The kubeconfig; otherwise KUBECONFIG, or the service account of the pod.
        #[arg(long, value_name = "FILE")]
        kubeconfig: Option<PathBuf>,
    },
    /// Preview the objects for files, or the changes in a cluster.
    ///
    /// With files, prints the objects that the loops would make for the custom resources in them. Otherwise, prints the
    /// changes that the loops would make in a cluster, as kubectl diff does. Nothing is written.
    Plan(PlanArguments),
    /// Explain what an Instance waits for, and who can act.
    ///
    /// Prints the objects that it waits for and since when, what happens next, and who may stop or delete it.
    Why(WhyArguments),
    /// Show the state of the installation, or of a course.
    ///
    /// Without a Workspace, prints the leader, the loops, the systems outside of the cluster, the CRDs, the objects and
    /// the oldest problems. With a Workspace, lists its Instances with their Tenants, how long they have been idle, and
    /// how many cores they use.
    Status(StatusArguments),
    /// Start, stop, collect or delete the machines of a class.
    ///
    /// Acts with the account of the kubeconfig. An action that is interrupted can be continued with its identifier. Exits
    /// with 4 if something was refused, or is still to do.
    Class(ClassArguments),
    /// Remove the finalizers from the objects of a former selector.
    ///
    /// Releases the objects that a daemon managed under a former selector of its configuration. Refused while a daemon
    /// manages the objects of that selector.
    Release {
        /// The former selector, such as crownlabs.polito.it/operator-selector=production; commas separate labels.
        #[arg(long, value_name = "KEY=VALUE")]
        selector: String,
        /// Only print the objects that would be released.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        cluster: ClusterArguments,
    },
    /// Move from the Go operators.
    #[command(subcommand)]
    Takeover(TakeoverCommand),
    /// Print the custom resource definitions.
    Crd {
        /// The allowed processor cores in quotas: whole numbers, as the newest dashboard and its relay expect, or also
        /// amounts such as 500m.
        #[arg(long, value_name = "TYPE", value_parser = ["integer", "intOrString"], default_value = "intOrString")]
        quota_cpu: String,
    },
    /// Print, check or describe the configuration file.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Write the man pages, one for each command.
    Man {
        /// The folder; created if it does not exist.
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
    /// Check a cluster that the Go operators run.
    ///
    /// Prints the changes that the daemon would make, and the obstacles to a takeover. Nothing is written. Exits with 4
    /// if there is an obstacle.
    Check {
        /// The configuration file, or a ConfigMap manifest that contains it; by default, the default configuration.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        #[command(flatten)]
        cluster: ClusterArguments,
        #[command(flatten)]
        output: OutputArguments,
    },
}

/// The cluster of a command.
#[derive(Args)]
struct ClusterArguments {
    /// The kubeconfig; otherwise KUBECONFIG, ~/.kube/config, or the service account of the pod.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; by default, its current context.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl ClusterArguments {
    fn options(self, namespace: Option<String>) -> ClusterOptions {
        ClusterOptions { kubeconfig: self.kubeconfig, context: self.context, namespace }
    }
}

/// The output format of a command.
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
    /// Files with custom resources in YAML or JSON, and folders of such files; - is standard input. Exits with 2 if
    /// something cannot be made.
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..)]
    file: Vec<PathBuf>,
    /// Exit with 0 even if something in the files cannot be made.
    #[arg(long, requires = "file")]
    allow_problems: bool,
    /// A cluster. With files, its Workspaces, Tenants, Templates and volumes are taken into account. Without files, the
    /// changes that the loops would make in it now are printed. Exits with 0 if there are none, with 4 if there are any,
    /// and with 1 after an error.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, or of KUBECONFIG or ~/.kube/config; by default, the current context.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// With files, the namespace of objects without a namespace; without files, print only the writes for objects in
    /// this namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// The configuration file, or a ConfigMap manifest that contains it; by default, the default configuration.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print the default file, with a description of each key.
    Default,
    /// Check a file.
    ///
    /// Every fault is reported with its line. A warning does not count as a fault.
    Check {
        /// The file, or a ConfigMap manifest that contains it.
        file: PathBuf,
        /// Check each server that the file names, and every part of the cluster that the enabled loops need, with the
        /// account of the kubeconfig. Exits with 4 if a check fails. Nothing is written.
        #[arg(long)]
        connect: bool,
        /// The kubeconfig; otherwise KUBECONFIG, ~/.kube/config, or the service account of the pod.
        #[arg(long, value_name = "FILE", requires = "connect")]
        kubeconfig: Option<PathBuf>,
        /// The context of the kubeconfig; by default, its current context.
        #[arg(long, value_name = "NAME", requires = "connect")]
        context: Option<String>,
        /// Print for programs instead of people.
        #[arg(short, long, value_name = "FORMAT", value_parser = format(), requires = "connect")]
        output: Option<Format>,
    },
    /// Print the JSON Schema of the file.
    Schema,
    /// Convert the values of the Go operators' chart.
    ///
    /// Prints values of the daemon's chart. Standard error has the steps that must be done, the facts that should be
    /// known, and the values that were ignored. Exits with 5 if a step must be done before the result can be used.
    FromValues {
        /// The values, as "helm get values RELEASE --all -o yaml" prints them; - is standard input.
        file: PathBuf,
        /// Print only the configuration file, for installations without the chart.
        #[arg(long)]
        configuration: bool,
        /// The namespace of the operators' release and of their Gateway.
        #[arg(short, long, value_name = "NAMESPACE")]
        namespace: Option<String>,
    },
}

/// How long the end of the process waits for pending system calls.
const LAST_THREADS: Duration = Duration::from_millis(500);

/// The exit code of a command with findings; 1 is for errors, and 2 for an invalid command line.
const EXIT_FOUND: u8 = 4;

/// The exit code of `plan -f` if something in the files cannot be made.
const EXIT_REFUSED: u8 = 2;

/// The exit code of `config from-values` if a step must be done before the result can be used.
const EXIT_UNUSABLE: u8 = 5;

/// Returns the arguments. Under the name `kubectl-crownlabs`, the binary is a plugin of `kubectl`.
fn arguments() -> Arguments {
    let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let is_plugin = program.file_stem().is_some_and(|name| name == "kubectl-crownlabs");
    let program = if is_plugin { "kubectl crownlabs" } else { "crownlabs" };
    let command = examples::added(Arguments::command(), program);
    let command = if is_plugin { command.bin_name(program) } else { command };
    Arguments::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
}

fn main() -> ExitCode {
    let Arguments { version, command } = arguments();
    match command.map_or_else(|| inspect::version(version), execute) {
        Ok(code) => code,
        Err(error) => {
            if error.is::<ConfigError>() {
                // One fault per line, each with its place, in the style of compilers.
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
            let findings = block_on(crownlabs::takeover(&config, &cluster, output.output))?;
            return print_findings(&findings, output.output);
        }
        Command::Why(arguments) => return inspect::why(arguments),
        Command::Status(arguments) => return inspect::status(arguments),
        Command::Class(arguments) => return course::class(arguments),
        Command::Release { selector, dry_run, cluster } => {
            let release = Release { selector, is_dry: dry_run };
            let line = |line: &str| print(&format!("{line}\n"));
            block_on(crownlabs::release(release, &cluster.options(None), &line))?;
        }
        Command::Crd { quota_cpu } => print(&crownlabs::crds(quota_cpu == "integer"))?,
        Command::Config(ConfigCommand::Default) => print(&crownlabs::default_configuration())?,
        Command::Config(ConfigCommand::Check { file, connect, kubeconfig, context, output }) => {
            let config = Config::load_any(&file)?;
            let warn = |warning: &String| say(&format!("{}: warning: {warning}", file.display()));
            config.warnings().iter().for_each(warn);
            if connect {
                let cluster = ClusterOptions { kubeconfig, context, namespace: None };
                let findings = block_on(crownlabs::connections(&config, &cluster, output))?;
                return print_findings(&findings, output);
            }
            print(&format!("{} is valid\n", file.display()))?;
        }
        Command::Config(ConfigCommand::FromValues { file, configuration, namespace }) => {
            let Input { name, text } = crownlabs::read_input(&file)?;
            let made = if configuration { crownlabs::Made::Configuration } else { crownlabs::Made::Chart };
            let made = crownlabs::from_values(&text, made, namespace.as_deref())
                .map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
            say_coloured(&made.report());
            print(&made.yaml)?;
            if !made.is_usable() {
                return Ok(ExitCode::from(EXIT_UNUSABLE));
            }
        }
        Command::Config(ConfigCommand::Schema) => {
            print(crownlabs::CONFIGURATION_SCHEMA)?;
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
        return print_findings(&block_on(crownlabs::changes(&config, &cluster, format))?, format);
    }
    let planned: Output = if is_alone {
        let around = Surroundings { namespace: cluster.namespace, ..Surroundings::default() };
        crownlabs::plan(&file, &config, around)?
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

/// The configuration in a file, or the defaults.
fn configuration(file: Option<PathBuf>) -> Result<Config, ConfigError> {
    file.map_or_else(|| Ok(Config::default()), |file| Config::load_any(&file))
}

/// Runs a future to its end.
fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // The loops mostly wait for the API server. Passing work between threads costs more than a second thread would
        // gain (`make bench`).
        .worker_threads(1)
        .enable_all()
        .build()
        .context("the runtime cannot start")?;
    let result = runtime.block_on(future);
    // A thread that waits for a name server, for example, does not delay the exit.
    runtime.shutdown_timeout(LAST_THREADS);
    result
}

fn print_findings(findings: &Findings, format: Option<Format>) -> anyhow::Result<ExitCode> {
    let print = if format.is_none() { print_coloured } else { print };
    print(&findings.text)?;
    Ok(if findings.is_clean { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FOUND) })
}

fn write_man_pages(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let command = examples::added(Arguments::command(), "crownlabs");
    clap_mangen::generate_to(command.disable_help_subcommand(true), folder)
}
