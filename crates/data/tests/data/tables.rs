//! CSV and Parquet: what comes in comes out, and every bad input has its message.

use crate::Bench;
use fedkin_data::Task;
use fedkin_settings::Value;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

const WARDS: &str = "\
client,server,cluster,age,dose,y
b,south,two,40,1.5,1
a,north,one,30,.5,0
b,south,two,41,2.5,1
a,north,one,31,1e1,0
c,south,one,50,-3,2
";

fn csv(content: &str) -> Bench {
    Bench::new("csv")
        .file("wards.csv", content)
        .set("path", "wards.csv")
        .set("client", "client")
        .set("target", "y")
}

fn wards(content: &str) -> Bench {
    csv(content)
        .set("server", "server")
        .set("cluster", "cluster")
        .graph(&[("kind", Value::Text("complete".into()))])
}

#[test]
fn a_csv_file_becomes_a_world() {
    let world = wards(WARDS).world();
    assert_eq!(world.federation.client_names(), ["a", "b", "c"]);
    assert_eq!(world.federation.server_names(), ["north", "south"]);
    assert_eq!(world.federation.cluster_names(), ["one", "two"]);
    assert_eq!(world.federation.members()[1].server, 1);
    assert_eq!(world.schema.column_names(), ["age", "dose"]);
    assert_eq!(world.train[0].features(), [30.0, 0.5, 31.0, 10.0]);
    assert_eq!(world.train[2].targets(), [2.0]);
    assert!(world.test.iter().all(Option::is_none) && world.truth.is_none());
}

#[test]
fn the_fingerprint_sees_names_groups_edges_schema_and_records() {
    let known = wards(WARDS).world().fingerprint;
    assert_eq!(wards(WARDS).world().fingerprint, known);
    for (from, to) in [
        ("\nc,", "\nd,"),
        ("south", "west"),
        ("two", "uno"),
        ("dose", "mass"),
        ("1e1", "11"),
        ("-3,2", "-3,3"),
    ] {
        assert_ne!(wards(&WARDS.replace(from, to)).world().fingerprint, known, "{from} to {to}");
    }
    assert_ne!(wards(WARDS).set("test_fraction", 0.5).world().fingerprint, known);
    let mut apart = wards(WARDS).graph(&[("kind", Value::Text("none".into()))]);
    apart.connected = false;
    assert_ne!(apart.world().fingerprint, known);
    let schema = "[[features]]\nname = 'age'\nunit = 'years'\n[[features]]\nname = 'dose'\n";
    assert_ne!(wards(WARDS).file("s.toml", schema).set("schema", "s.toml").world().fingerprint, known);
}

#[test]
fn quotes_crlf_a_byte_order_mark_and_gzip_are_read() {
    let plain = wards(WARDS).world();
    let odd = format!("\u{feff}{}", WARDS.replace('\n', "\r\n").replace("north", "\" north\""));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, odd.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(wards(&odd).world().fingerprint, plain.fingerprint);
    let bench = wards(WARDS).file("wards.csv", packed);
    assert_eq!(bench.world().fingerprint, plain.fingerprint);
}

#[test]
fn without_server_and_cluster_columns_there_is_one_of_each() {
    let world = csv("client,x,y\na,1,2\nb,3,4\n").world();
    assert_eq!((world.federation.servers(), world.federation.clusters()), (1, 1));
}

#[test]
fn features_keep_the_order_of_the_list() {
    let world = wards(WARDS).set("features", vec!["dose", "age"]).world();
    assert_eq!(world.train[0].row(0), [0.5, 30.0]);
    wards(WARDS).set("features", vec!["dosis"]).refused(&["\"dosis\"", "`features`", "did you mean `dose`?"]);
    wards(WARDS).set("features", vec!["y"]).refused(&["`features`", "\"y\" has another role"]);
    wards(WARDS).set("features", vec!["age", "age"]).refused(&["listed twice"]);
}

#[test]
fn columns_that_are_not_there_are_refused_with_the_likely_one() {
    wards(WARDS).set("client", "clent").refused(&[
        "wards.csv",
        "\"clent\"",
        "`client`",
        "did you mean `client`?",
    ]);
    wards(WARDS).set("server", "sever").refused(&["\"sever\"", "did you mean `server`?"]);
    wards(WARDS).set("target", "z").refused(&["\"z\"", "`target`", "known here: client, server"]);
    wards(WARDS).set("target", "client").refused(&["`client`", "another role"]);
}

#[test]
fn bad_cells_are_refused_with_line_and_column() {
    wards(&WARDS.replace("2.5", "abc"))
        .refused(&["wards.csv:4: column \"dose\": \"abc\" is not a finite number"]);
    wards(&WARDS.replace("2.5", "")).refused(&["wards.csv:4: column \"dose\": the cell is empty"]);
    wards(&WARDS.replace("2.5", "NaN"))
        .refused(&["wards.csv:4: column \"dose\": the cell is empty or missing"]);
    wards(&WARDS.replace("2.5", "inf"))
        .refused(&["wards.csv:4: column \"dose\": \"inf\" is not a finite number"]);
    wards(&WARDS.replace("2.5", "1e999")).refused(&["wards.csv:4: column \"dose\": \"1e999\""]);
    wards(&WARDS.replace("-3,2", "-3,?"))
        .refused(&["wards.csv:6: column \"y\": the cell is empty or missing"]);
    wards(&WARDS.replace("a,north,one,31", ",north,one,31")).refused(&["wards.csv:5: column \"client\""]);
    wards(&WARDS.replace("south,two,41", ",two,41")).refused(&["wards.csv:4: column \"server\""]);
}

#[test]
fn lines_are_counted_through_quoted_breaks_and_empty_lines() {
    let text = "client,note,x,y\n\"a\nb\",1,1,1\n\nc,1,bad,2\n";
    csv(text).refused(&["wards.csv:5: column \"x\": \"bad\""]);
    csv(&text.replace('\n', "\r\n")).refused(&["wards.csv:5: column \"x\": \"bad\""]);
    csv(&format!("\u{feff}{}", text.trim_end())).refused(&["wards.csv:5: column \"x\": \"bad\""]);
    let long: Vec<String> = (0..30_000).map(|i| format!("c{},1,{i},1\r\n", i % 7)).collect();
    let long = long.concat();
    csv(&format!("client,note,x,y\r\n{long}a,1,bad,2")).refused(&["wards.csv:30002: column \"x\": \"bad\""]);
}

#[test]
fn bad_records_and_headers_are_refused() {
    wards(&WARDS.replace("1.5,1", "1.5"))
        .refused(&["wards.csv:2: the record has 5 cells but the header has 6"]);
    wards(&WARDS.replace("dose,y", "age,y")).refused(&["the header names \"age\" twice (columns 4 and 5)"]);
    wards(&WARDS.replace("age,", ",")).refused(&["column 4 has no name"]);
    csv("").refused(&["wards.csv: the file is empty"]);
    csv("client,x,y\n").refused(&["there is a header but no record"]);
    csv("1,2,3\n4,5,6\n").refused(&["the first line holds numbers", "add a header line"]);
    csv("client;x;y\na;1;2\n").refused(&["no comma but ';'"]);
    csv("client,y\na,1\n").refused(&["no column is left to predict from"]);
    let latin = Bench::new("csv").file("wards.csv", b"client,x,y\na,1,1\nb,\xe9,1\n");
    let latin = latin.set("path", "wards.csv").set("client", "client").set("target", "y");
    latin.refused(&["wards.csv:3: column \"x\": the cell is not UTF-8"]);
    let none = Bench::new("csv").set("path", "gone.csv").set("client", "client").set("target", "y");
    none.refused(&["cannot read gone.csv", "check that the path is right"]);
}

#[test]
fn labels_of_a_classification_are_0_and_1() {
    wards(WARDS).classify().refused(&["wards.csv:6: column \"y\": the label 2 is neither 0 nor 1"]);
    assert_eq!(wards(&WARDS.replace("-3,2", "-3,1")).classify().task, Task::Classification);
    wards(&WARDS.replace("-3,2", "-3,1.0")).classify().world();
}

#[test]
fn labels_of_several_classes_are_numbers_from_0() {
    let classes = |text: &str, count: u32| {
        let mut bench = wards(text);
        bench.task = Task::Classes(count);
        bench
    };
    classes(WARDS, 3).world();
    classes(WARDS, 2).refused(&[
        "wards.csv:6: column \"y\": the label 2 is no class",
        "0 to 1",
        "model.classes",
    ]);
    classes(&WARDS.replace("-3,2", "-3,1.5"), 3).refused(&[
        "wards.csv:6",
        "the label 1.5 is no class",
        "0 to 2",
    ]);
    let words = "client,x,y\na,1,sit\nb,2,stand\n";
    let mut bench = csv(words).set("client", "client").set("target", "y");
    bench.task = Task::Classes(2);
    bench.refused(&["wards.csv:2: column \"y\": the label \"sit\" is a word", "from 0 to 1"]);
}

#[test]
fn a_client_has_one_server_and_one_cluster() {
    wards(&WARDS.replace("south,two,41", "north,two,41")).refused(&[
        "wards.csv:4: client \"b\" has server \"north\" here but \"south\" in line 2",
        "correct one of the records",
    ]);
    wards(&WARDS.replace("one,31", "two,31"))
        .refused(&["wards.csv:5: client \"a\" has cluster \"two\" here but \"one\" in line 3"]);
}

#[test]
fn text_needs_declared_categories() {
    let text = "client,ward,x,y\na,east,1,1\na,west,2,2\nb,east,3,3\n";
    csv(text).refused(&["wards.csv:2: column \"ward\"", "categories = [\"east\", \"west\"]", "schema.toml"]);
    let schema = "target = 'y'\n[[features]]\nname = 'x'\nunit = 'mg'\n[[features]]\nname = 'ward'\ncategories = ['west', 'east']\n";
    let bench = csv(text).file("schema.toml", schema).set("schema", "schema.toml");
    let world = bench.world();
    assert_eq!(world.schema.column_names(), ["x", "ward=west", "ward=east"]);
    assert_eq!(world.schema.features[0].unit.as_deref(), Some("mg"));
    assert_eq!(world.train[0].features(), [1.0, 0.0, 1.0, 2.0, 1.0, 0.0]);
    let json = r#"{ "features": [{ "name": "x", "unit": "mg" }, { "name": "ward", "categories": ["west", "east"] }] }"#;
    let same = csv(text).file("schema.json", json).set("schema", "schema.json").world();
    assert_eq!(same.fingerprint, world.fingerprint);
    bench.file("wards.csv", text.replace("west", "wset")).refused(&[
        "wards.csv:3: column \"ward\": \"wset\" is not among the declared categories",
        "did you mean `west`?",
    ]);
}

#[test]
fn schemas_are_checked() {
    let with = |schema: &str| csv("client,x,y\na,1,2\n").file("s.toml", schema).set("schema", "s.toml");
    with("features = []").refused(&["s.toml: no feature is declared"]);
    with("[[features]]\nname = 'q'\n").refused(&["no column \"q\"", "`schema`"]);
    with("[[features]]\nname = 'x'\n[[features]]\nname = 'x'\n").refused(&["\"x\" is declared twice"]);
    with("[[features]]\nname = 'x'\nunits = 'mg'\n").refused(&["s.toml: not a schema", "units"]);
    with("[[features]]\nname = 'y'\n").refused(&["\"y\" as a feature"]);
    with("target = 'z'\n[[features]]\nname = 'x'\n").refused(&["declares the target \"z\"", "\"y\""]);
    with("[[features]]\nname = 'x'\n").set("features", vec!["x"]).world();
    with("target = 3").refused(&["s.toml: not a schema"]);
}

#[test]
fn the_split_is_seeded_per_client_and_leaves_a_training_record() {
    let rows: Vec<String> =
        (0..40).map(|i| format!("{},{i},{i}\n", if i < 39 { "a" } else { "b" })).collect();
    let text = format!("client,x,y\n{}", rows.concat());
    let bench = csv(&text).set("test_fraction", 0.25);
    let world = bench.world();
    assert_eq!((world.train[0].rows(), world.test[0].as_ref().unwrap().rows()), (29, 10));
    assert!(world.train[1].rows() == 1 && world.test[1].is_none());
    let mut all: Vec<f64> = [world.train[0].targets(), world.test[0].as_ref().unwrap().targets()].concat();
    all.sort_by(f64::total_cmp);
    assert_eq!(all, (0..39).map(f64::from).collect::<Vec<_>>());
    assert_eq!(bench.world().fingerprint, world.fingerprint);
    assert_ne!(bench.seed(8).world().fingerprint, world.fingerprint);
}

#[test]
fn a_split_column_decides() {
    let text = "client,part,x,y\na,train,1,1\na,test,2,2\nb,train,3,3\n";
    let world = csv(text).set("split", "part").world();
    assert_eq!(world.test[0].as_ref().unwrap().targets(), [2.0]);
    assert!(world.test[1].is_none());
    csv(text).set("split", "part").set("test_fraction", 0.5).refused(&["`test_fraction`", "drop one"]);
    csv(&text.replace("b,train", "b,test"))
        .set("split", "part")
        .refused(&["wards.csv:4: client \"b\" has test records only"]);
    csv(&text.replace("b,train", "b,valid"))
        .set("split", "part")
        .refused(&["wards.csv:4: column \"part\": \"valid\" is neither \"train\" nor \"test\""]);
}

#[test]
fn standardising_by_client_uses_its_training_records_only() {
    let text = "client,part,x,c,y\na,train,1,5,1\na,train,3,5,1\na,test,5,5,2\nb,train,7,5,3\n";
    for value in [crate::Setting::from(true), crate::Setting::from("client")] {
        let world = csv(text).set("split", "part").set("standardise", value).world();
        assert_eq!(world.train[0].features(), [-1.0, 0.0, 1.0, 0.0]);
        assert_eq!(world.test[0].as_ref().unwrap().features(), [3.0, 0.0]);
        assert_eq!(world.train[1].features(), [0.0, 0.0]);
    }
}

#[test]
fn standardising_by_constants() {
    let text = "client,x,z,y\na,1,5,1\n";
    let with = |constants: &str| csv(text).file("c.csv", constants).set("standardise", "c.csv");
    assert_eq!(with("feature,mean,scale\nz,1,2\nx,3,4\n").world().train[0].features(), [-0.5, 2.0]);
    with("feature,mean,scale\nx,3,4\n").refused(&["c.csv: feature \"z\" has no constants"]);
    with("feature,mean,scale\nx,3,4\nz,1,0\n").refused(&["c.csv:3: column \"scale\": 0 is not above 0"]);
    with("feature,mean,scale\nx,3,4\nx,1,1\n").refused(&["c.csv:3: column \"feature\": \"x\" appears twice"]);
    with("feature,mean,scale\nx,3,4\nz,1,1\nq,1,1\n").refused(&["\"q\" is not a numeric feature"]);
    with("name,mean,scale\nx,3,4\n").refused(&["columns feature, mean, scale"]);
    csv(text).set("standardise", "clent").refused(&["`standardise`: \"clent\" is neither true"]);
}

/// The same records as `WARDS`, in all the types a file can hold.
fn parquet_bytes(null: bool, text: &str, compression: Compression) -> Vec<u8> {
    let message = "message m { required int64 client; required binary server (UTF8); required int32 age; \
                   required float dose; optional boolean flag; required double y; }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
    for part in 0..2 {
        let mut group = writer.next_row_group().unwrap();
        let mut at = 0;
        while let Some(mut column) = group.next_column().unwrap() {
            match at {
                0 => column.typed::<Int64Type>().write_batch(&[2, 10], None, None),
                1 => column.typed::<ByteArrayType>().write_batch(
                    &[ByteArray::from(text), "s".into()],
                    None,
                    None,
                ),
                2 => column.typed::<Int32Type>().write_batch(&[40 + part, 30], None, None),
                3 => column.typed::<FloatType>().write_batch(&[0.5, 1.5], None, None),
                4 if null && part == 1 => {
                    column.typed::<BoolType>().write_batch(&[true], Some(&[1, 0]), None)
                }
                4 => column.typed::<BoolType>().write_batch(&[true, false], Some(&[1, 1]), None),
                _ => column.typed::<DoubleType>().write_batch(&[1.0, 0.0], None, None),
            }
            .unwrap();
            column.close().unwrap();
            at += 1;
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    bytes
}

pub fn sample_parquet() -> Vec<u8> {
    parquet_bytes(false, "t", Compression::SNAPPY)
}

fn parquet(bytes: Vec<u8>) -> Bench {
    let bench = Bench::new("parquet").file("wards.parquet", bytes).set("path", "wards.parquet");
    bench.set("client", "client").set("target", "y").set("server", "server")
}

#[test]
fn a_parquet_file_becomes_a_world() {
    let mut codecs = vec![Compression::UNCOMPRESSED, Compression::SNAPPY];
    if cfg!(feature = "zstd") {
        codecs.push(Compression::ZSTD(parquet::basic::ZstdLevel::default()));
    }
    let ring = [("kind", Value::Text("ring".into()))];
    for codec in codecs {
        let world = parquet(parquet_bytes(false, "t", codec)).graph(&ring).world();
        assert_eq!(world.federation.client_names(), ["10", "2"]);
        assert_eq!(world.schema.column_names(), ["age", "dose", "flag"]);
        assert_eq!(world.train[1].features(), [40.0, 0.5, 1.0, 41.0, 0.5, 1.0]);
        assert_eq!(world.train[1].targets(), [1.0, 1.0]);
    }
}

#[test]
fn bad_parquet_files_are_refused_with_the_row() {
    let none = Compression::UNCOMPRESSED;
    let null = parquet(parquet_bytes(true, "t", none)).graph(&[("kind", Value::Text("ring".into()))]);
    null.refused(&["wards.parquet: row 4: column \"flag\": the cell is empty or missing"]);
    parquet(parquet_bytes(false, "", none)).refused(&["wards.parquet: row 1: column \"server\""]);
    let mut text = parquet(sample_parquet());
    text.data.remove("server");
    text.refused(&["column \"server\"", "categories = [\"s\", \"t\"]"]);
    parquet(WARDS.as_bytes().to_vec()).refused(&["wards.parquet: this is not a Parquet file"]);
}

#[test]
fn heart_disease_loads_once_its_gaps_are_gone() {
    let Some(folder) = crate::real_data("heart-disease") else { return };
    let names = "age,sex,cp,trestbps,chol,fbs,restecg,thalach,exang,oldpeak,slope,ca,thal,num";
    let raw = std::fs::read_to_string(folder.join("processed.cleveland.data")).unwrap();
    csv(&raw).refused(&["the first line holds numbers"]);
    let table = |keep: &dyn Fn(&str) -> bool| {
        let rows = raw.lines().filter(|line| keep(line)).map(|line| format!("cleveland,{line}"));
        format!("client,{names}\n{}\n", rows.collect::<Vec<_>>().join("\n"))
    };
    let gap = raw.lines().position(|line| line.split(',').nth(11) == Some("?")).unwrap() + 2;
    let bench = csv(&table(&|_| true)).set("target", "num");
    bench.refused(&[&format!("wards.csv:{gap}: column \"ca\": the cell is empty or missing (as are 3 more")]);
    let world =
        csv(&table(&|line| !line.contains('?'))).set("target", "num").set("standardise", true).world();
    assert_eq!((world.train[0].rows(), world.train[0].columns()), (297, 13));
}
