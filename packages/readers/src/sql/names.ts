/**
 * PostgreSQL functions that compute from their arguments, and touch nothing else. Every other function may write, wait,
 * read files, run SQL or reach another server: `setval`, `pg_sleep`, `pg_read_file`, `query_to_xml`, `dblink`. The names
 * are from `pg_proc` of PostgreSQL 18. Grammar words such as `coalesce` are not listed: written as a function's name, such
 * a word calls a function that somebody defined.
 */
export const pure: ReadonlySet<string> = new Set(
  (
    "count sum avg min max stddev stddev_pop stddev_samp variance var_pop var_samp corr covar_pop covar_samp regr_slope " +
    "regr_intercept regr_r2 bool_and bool_or every bit_and bit_or any_value string_agg array_agg json_agg jsonb_agg " +
    "json_object_agg jsonb_object_agg percentile_cont percentile_disc mode rank dense_rank percent_rank cume_dist " +
    "row_number ntile lag lead first_value last_value nth_value abs ceil ceiling floor round trunc sign sqrt cbrt exp ln " +
    "log log10 power pow mod div gcd lcm random degrees radians sin cos tan asin acos atan atan2 pi width_bucket length " +
    "char_length character_length octet_length bit_length lower upper initcap btrim ltrim rtrim substr substring left " +
    "right replace translate reverse strpos position split_part concat concat_ws format to_char to_number ascii chr md5 " +
    "sha256 encode decode overlay starts_with quote_ident quote_literal quote_nullable regexp_replace regexp_match " +
    "regexp_matches regexp_split_to_array regexp_split_to_table regexp_count regexp_like regexp_substr regexp_instr " +
    "string_to_array string_to_table unnest similar_escape like_escape now age date_part date_trunc date_bin extract " +
    "make_date make_time make_timestamp make_timestamptz make_interval to_date to_timestamp clock_timestamp " +
    "statement_timestamp transaction_timestamp timeofday justify_days justify_hours justify_interval isfinite timezone " +
    "date overlaps to_json to_jsonb row_to_json array_to_json json_build_object jsonb_build_object json_build_array " +
    "jsonb_build_array json_object jsonb_object json_array_length jsonb_array_length json_array_elements " +
    "jsonb_array_elements json_array_elements_text jsonb_array_elements_text json_each jsonb_each json_each_text " +
    "jsonb_each_text json_object_keys jsonb_object_keys json_extract_path json_extract_path_text jsonb_extract_path " +
    "jsonb_extract_path_text json_typeof jsonb_typeof jsonb_set jsonb_insert jsonb_strip_nulls json_strip_nulls " +
    "jsonb_pretty jsonb_path_query jsonb_path_exists jsonb_path_query_array jsonb_path_query_first jsonb_path_match " +
    "array_length array_upper array_lower array_ndims cardinality array_append array_prepend array_cat array_remove " +
    "array_replace array_position array_positions array_to_string array_fill generate_subscripts to_tsvector to_tsquery " +
    "plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_rank ts_rank_cd ts_headline generate_series version " +
    "current_database current_schema pg_typeof num_nulls num_nonnulls gen_random_uuid uuidv4 uuidv7 pg_column_size " +
    "pg_size_pretty lpad rpad repeat to_hex to_bin to_oct sha224 sha384 sha512 crc32 crc32c casefold normalize " +
    "is_normalized unistr parse_ident similar_to_escape notlike bit_count get_bit get_byte set_bit set_byte bit_xor sind " +
    "cosd tand cotd asind acosd atand atan2d sinh cosh tanh asinh acosh atanh cot erf erfc gamma lgamma factorial scale " +
    "min_scale trim_scale array_dims array_reverse array_sort array_sample array_shuffle trim_array regr_avgx regr_avgy " +
    "regr_count regr_sxx regr_sxy regr_syy range_agg range_intersect_agg json_agg_strict jsonb_agg_strict " +
    "json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict jsonb_object_agg_strict " +
    "jsonb_object_agg_unique jsonb_object_agg_unique_strict isempty lower_inc upper_inc lower_inf upper_inf range_merge " +
    "int4range int8range numrange tsrange tstzrange daterange int4multirange int8multirange nummultirange tsmultirange " +
    "tstzmultirange datemultirange multirange host hostmask netmask network masklen broadcast family abbrev set_masklen " +
    "inet_same_family inet_merge macaddr8_set7bit area center diameter height width radius npoints isclosed isopen pclose " +
    "popen diagonal slope bound_box isparallel isperp ishorizontal isvertical jsonb_set_lax jsonb_delete " +
    "jsonb_delete_path jsonb_concat jsonb_exists jsonb_exists_any jsonb_exists_all jsonb_contains jsonb_contained " +
    "json_object_field json_object_field_text jsonb_object_field jsonb_object_field_text json_array_element " +
    "json_array_element_text jsonb_array_element jsonb_array_element_text jsonb_path_exists_tz jsonb_path_match_tz " +
    "jsonb_path_query_tz jsonb_path_query_array_tz jsonb_path_query_first_tz date_add date_subtract " +
    "uuid_extract_timestamp uuid_extract_version pg_size_bytes setweight strip tsvector_to_array array_to_tsvector " +
    "ts_delete ts_filter numnode tsquery_phrase querytree current_schemas pg_collation_for text varchar bpchar char name " +
    "bool int2 int4 int8 float4 float8 numeric money bit varbit bytea time timetz timestamp timestamptz interval oid cidr " +
    "macaddr macaddr8 point box circle line lseg path polygon xid"
  ).split(" "),
);

/** Functions in `pure` that return several rows. */
export const givesRows: ReadonlySet<string> = new Set(
  (
    "generate_series generate_subscripts unnest string_to_table regexp_matches regexp_split_to_table json_array_elements " +
    "jsonb_array_elements json_array_elements_text jsonb_array_elements_text json_each jsonb_each json_each_text " +
    "jsonb_each_text json_object_keys jsonb_object_keys jsonb_path_query jsonb_path_query_tz"
  ).split(" "),
);

/** Functions in `pure` that return one of their arguments, or an element of it, which may have columns. */
export const givesArgument: ReadonlySet<string> = new Set(
  (
    "unnest any_value min max mode first_value last_value nth_value lag lead array_agg array_append array_prepend array_cat " +
    "array_remove array_replace array_reverse array_sample array_shuffle trim_array"
  ).split(" "),
);

/** Functions in `pure` that compute one value from many rows. */
export const aggregates: ReadonlySet<string> = new Set(
  (
    "count sum avg min max stddev stddev_pop stddev_samp variance var_pop var_samp bool_and bool_or every bit_and bit_or " +
    "bit_xor any_value string_agg array_agg json_agg jsonb_agg json_object_agg jsonb_object_agg"
  ).split(" "),
);

/**
 * PostgreSQL functions that are not pure and take one argument, so `(x).name` and `alias.name` call them. Any other name
 * after a dot is read as a column.
 */
const dotted: ReadonlySet<string> = new Set(
  (
    "aclexplode aclitemout amvalidate anyarray_out anyarray_send anycompatiblearray_out anycompatiblearray_send " +
    "anycompatiblemultirange_out anycompatiblerange_out anyenum_out anymultirange_out anyrange_out array_out array_send " +
    "bpcharsend cash_out current_setting currval date_out enum_first enum_last enum_out enum_range enum_send " +
    "fmgr_c_validator fmgr_internal_validator fmgr_sql_validator gin_clean_pending_list interval_out json_to_record " +
    "json_to_recordset jsonb_to_record jsonb_to_recordset multirange_out multirange_send mxid_age namesend nextval " +
    "obj_description oidvectortypes plpgsql_validator range_out range_send record_out record_send regclass regclassout " +
    "regcollationout regconfigout regdictionaryout regnamespaceout regoperatorout regoperout regprocedureout regprocout " +
    "regroleout regtypeout row_security_active setseed textsend timestamp_out timestamptz_out ts_debug ts_stat " +
    "ts_token_type varcharsend xml xml_is_well_formed xml_send"
  ).split(" "),
);
const dottedByPrefix = /^(?:pg_|lo_|txid_|binary_upgrade_|brin_|to_reg|dblink|postgres_fdw_)/;

/** May `(x).name` call a PostgreSQL function that is not pure? */
export function isCalledByDot(name: string): boolean {
  return dotted.has(name) || (dottedByPrefix.test(name) && !pure.has(name));
}

/** PostgreSQL's own types. A cast to any other type may run its owner's code: the check of a domain, a cast function. */
export const types: ReadonlySet<string> = new Set(
  (
    "bit bool box bpchar bytea char cid cidr circle date datemultirange daterange float4 float8 inet int2 int4 " +
    "int4multirange int4range int8 int8multirange int8range interval json jsonb jsonpath line lseg macaddr macaddr8 money " +
    "name numeric nummultirange numrange oid path pg_lsn pg_snapshot point polygon refcursor " +
    "regconfig text tid time " +
    "timestamp timestamptz timetz tsmultirange tsquery tsrange tstzmultirange tstzrange tsvector txid_snapshot uuid " +
    "varbit varchar xid xid8 xml"
  ).split(" "),
);

/** PostgreSQL's own operators. Somebody defined any other operator, with a function of their own. */
export const operators: ReadonlySet<string> = new Set(
  (
    "!! !~ !~* !~~ !~~* # ## #- #> #>> % & && &< &<| &> * *< *<= *<> *= *> *>= + - -> ->> -|- / < <-> << <<= <<| <= <> <@ " +
    "<^ = > >= >> >>= >^ ? ?# ?& ?- ?-| ?| ?|| @ @-@ @> @? @@ @@@ ^ ^@ | |&> |/ |>> || ||/ ~ ~* ~<=~ ~<~ ~= ~>=~ ~>~ ~~ " +
    "~~*"
  ).split(" "),
);
