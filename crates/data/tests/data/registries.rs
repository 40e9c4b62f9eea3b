//! The tables of sources and partitioners: what every row promises, and rows that a program adds.

use crate::Bench;
use fedkin_data::partition::{Deal, Partition, Partitioner, Pool};
use fedkin_data::sources::{self, Each, Range};
use fedkin_data::{
    DataError, PartitionRow, Registry, Request, Source, SourceRow, Task, TopologySettings, World, load,
    native, partition,
};
use fedkin_settings::{Kind, Preset, Settings, Value, Values, settings};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Defaults of the table give the struct, the struct gives back values that pass the table, and both are one.
#[track_caller]
fn table_and_struct_agree<S: Settings>() {
    let preset = S::read(&Values::presets(S::PARAMS)).unwrap();
    assert_eq!(S::read(&Values::presets(S::PARAMS)).unwrap(), preset);
    let mut raw = preset.values();
    // A path or a column that must be named has no default; any text will do.
    for param in S::PARAMS.iter().filter(|param| matches!(param.preset, Preset::Required)) {
        let value = match param.kind {
            Kind::Number { .. } => Value::Number(1.0),
            Kind::List(_) => Value::List(vec![Value::Text("x".into())]),
            _ => Value::Text("x".into()),
        };
        raw.insert(param.name.into(), value);
    }
    let checked = Values::check(S::PARAMS, &raw).unwrap();
    let again = S::read(&checked).unwrap();
    assert_eq!(Values::check(S::PARAMS, &again.values()).unwrap(), checked);
    // What the config layer fills in is what the struct has.
    let required: BTreeMap<String, Value> = S::PARAMS
        .iter()
        .filter(|param| matches!(param.preset, Preset::Required))
        .map(|param| (param.name.to_string(), raw[param.name].clone()))
        .collect();
    assert_eq!(S::read(&Values::check(S::PARAMS, &required).unwrap()).unwrap(), again);
}

macro_rules! each {
    ($($type:ty),* $(,)?) => {{
        $(table_and_struct_agree::<$type>();)*
        vec![$(SourceRow::of::<$type>().name),*]
    }};
}

#[test]
fn the_defaults_of_every_source_are_those_of_its_table() {
    let seen: Vec<&str> = each![
        sources::ClusteredRegression,
        sources::ClusteredFunctions,
        sources::ShiftedClasses,
        sources::Mnist,
        sources::OrganAMnist,
        sources::Cifar10,
        sources::Csv,
        sources::Parquet,
        sources::UciHar,
        sources::HarBox,
        sources::HeartDisease,
        sources::OwnSignals,
        sources::GraphSignals,
        sources::Students,
        sources::Coil20,
        sources::Abide,
        sources::Memory,
    ];
    assert_eq!(seen, native().sources.names().collect::<Vec<_>>());
    table_and_struct_agree::<sources::MnistTasks>();
    table_and_struct_agree::<sources::OrganAMnistTasks>();
    table_and_struct_agree::<sources::Cifar10Tasks>();
    table_and_struct_agree::<sources::ByClass>();
    table_and_struct_agree::<TopologySettings>();
    let preset = sources::ClusteredRegression::default();
    assert_eq!((preset.samples, preset.clients_per_server), (Range { from: 2, to: 9 }, Each::All(15)));
}

#[test]
fn the_defaults_of_every_partitioner_are_those_of_its_table() {
    macro_rules! rows {
        ($($type:ty),* $(,)?) => {{
            $(table_and_struct_agree::<$type>();)*
            vec![$(<$type as Partitioner>::NAME),*]
        }};
    }
    let seen = rows![
        partition::Natural,
        partition::Iid,
        partition::Dirichlet,
        partition::Shards,
        partition::Quantity,
        partition::Rotation,
        partition::Permutation,
    ];
    assert_eq!(seen, native().partitioners.names().collect::<Vec<_>>());
}

#[test]
fn a_table_of_a_source_names_every_key_once_and_shows_its_default() {
    for row in &native().sources {
        let params = native().params(row);
        let names: BTreeSet<&str> = params.iter().map(|param| param.name).collect();
        assert_eq!(names.len(), params.len(), "{}", row.name);
        assert!(
            params.iter().all(|param| !param.help.contains("default:") && !param.help.contains("(default"))
        );
    }
    let params = native().params(native().source("mnist").unwrap());
    let of = |name: &str| params.iter().find(|param| param.name == name).unwrap().preset;
    assert_eq!((of("clients").shown(), of("clients").value()), (Some(Value::Integer(20)), None));
    assert_eq!(of("clients_per_server").shown(), Some(Value::Integer(15)));
}

settings! {
    /// A line that two clients see.
    struct Line {
        slope: f64 => Kind::FROM_ZERO, Preset::Number(2.0), "how steep the line is";
    }
}

impl Source for Line {
    const NAME: &'static str = "line";
    const SUMMARY: &'static str = "two clients on a line";

    fn load(&self, request: &Request<'_>) -> Result<World, DataError> {
        World::builder()
            .client("a", 1, vec![1.0], vec![self.slope])
            .client("b", 1, vec![2.0], vec![2.0 * self.slope])
            .task(request.task)
            .build()
    }
}

settings! {
    /// The first records, one for each client.
    struct Head {
        heads: usize => Kind::COUNT, Preset::Integer(3), "how many clients";
    }
}

impl Partition for Head {
    fn deal(&self, _: Pool<'_>, _: u64) -> Result<Deal, DataError> {
        Ok(Deal::whole((0..self.heads as u32).map(|record| vec![record]).collect()))
    }
}

impl Partitioner for Head {
    const NAME: &'static str = "head";
    const SUMMARY: &'static str = "the first records, one for each client";
}

fn own() -> Registry {
    let mut registry = Registry::native();
    registry.sources.add(SourceRow::of::<Line>()).unwrap();
    registry.partitioners.add(PartitionRow::of::<Head>()).unwrap();
    registry
}

fn loaded(
    registry: &Registry,
    source: &str,
    raw: &BTreeMap<String, Value>,
    task: Task,
    base: &Path,
) -> Result<World, String> {
    let row = registry.source(source).map_err(|error| error.to_string())?;
    let values = Values::check(&registry.params(row), raw).map_err(|problems| problems[0].to_string())?;
    let topology = TopologySettings::default().spec(base).unwrap();
    let request = Request {
        registry,
        source,
        values: &values,
        base,
        topology: &topology,
        task,
        seed: 1,
        require_connected: false,
    };
    load(&request).map_err(|error| error.to_string())
}

#[test]
fn an_own_source_loads_with_its_defaults_and_its_keys_are_checked() {
    let line = |raw: &BTreeMap<String, Value>| loaded(&own(), "line", raw, Task::Regression, Path::new(""));
    assert_eq!(line(&BTreeMap::new()).unwrap().train[1].targets(), [4.0]);
    let steep = BTreeMap::from([("slope".to_string(), Value::Integer(5))]);
    assert_eq!(line(&steep).unwrap().train[0].targets(), [5.0]);
    let odd = BTreeMap::from([("slop".to_string(), Value::Integer(5))]);
    assert_eq!(line(&odd).unwrap_err(), "`slop`: unknown key; did you mean `slope`?");
    let unknown = loaded(native(), "line", &steep, Task::Regression, Path::new("")).unwrap_err();
    assert!(unknown.contains("there is no data source \"line\""), "{unknown}");
}

#[test]
fn an_own_partitioner_deals_the_images_of_a_set() {
    let bench = crate::labelled::digits(40);
    let mut raw = bench.data.clone();
    raw.insert("partition".into(), Value::Text("head".into()));
    raw.insert("test_fraction".into(), Value::Number(0.0));
    let deal =
        |raw: &BTreeMap<String, Value>| loaded(&own(), "mnist", raw, Task::Classes(10), bench.folder.path());
    assert_eq!(deal(&raw).unwrap().train.len(), 3);
    raw.insert("heads".into(), Value::Integer(5));
    assert_eq!(deal(&raw).unwrap().train.len(), 5);
    raw.insert("alpha".into(), Value::Number(1.0));
    let message = deal(&raw).unwrap_err();
    assert!(
        message.contains("`alpha`") && message.contains("partition = \"head\" has no such key"),
        "{message}"
    );
    assert!(loaded(native(), "mnist", &raw, Task::Classes(10), bench.folder.path()).is_err());
}

#[test]
fn two_rows_of_one_name_are_refused() {
    let mut registry = own();
    let message = registry.sources.add(SourceRow::of::<Line>()).unwrap_err().to_string();
    assert_eq!(
        message,
        "there are two data sources called \"line\": every row of a registry needs a name of its own"
    );
    assert!(registry.partitioners.add(PartitionRow::of::<partition::Iid>()).is_err());
    assert_eq!((native().sources.iter().len(), native().partitioners.iter().len()), (17, 7));
}

#[test]
fn a_column_names_what_each_client_fits() {
    let table = "site,model,x,y\nb,tree,1,2\na,,3,4\nb,tree,5,6\nc,ridge,7,8\n";
    let bench = |text: &str| {
        Bench::new("csv")
            .file("t.csv", text)
            .set("path", "t.csv")
            .set("client", "site")
            .set("target", "y")
            .set("learner", "model")
    };
    let world = bench(table).world();
    assert_eq!(world.learners, Some(vec![None, Some("tree".into()), Some("ridge".into())]));
    assert_eq!(world.schema.column_names(), ["x"]);
    bench(&table.replace("b,tree,5", "b,ridge,5"))
        .refused(&["t.csv:4", "client \"b\" has learner \"ridge\" here but \"tree\" in line 2"]);
    bench(&table.replace("b,tree,5", "b,,5")).refused(&["has learner \"\" here but \"tree\""]);
    bench(table).set("learner", "modle").refused(&["`learner` names", "did you mean `model`?"]);
    bench(table).set("learner", "y").refused(&["`learner`", "another role"]);
    let without = bench("site,model,x,y\nb,,1,2\na,,3,4\n").world();
    assert!(without.learners.is_none());
}
