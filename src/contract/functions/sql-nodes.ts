/** What each statement of PostgreSQL's grammar is called. One that does not stand here is an error. */
export const kinds: ReadonlyMap<string, string> = new Map([
  ...of("select", "SelectStmt"),
  ...of("insert", "InsertStmt"),
  ...of("update", "UpdateStmt"),
  ...of("delete", "DeleteStmt"),
  ...of("merge", "MergeStmt"),
  ...of("truncate", "TruncateStmt"),
  ...of("copy", "CopyStmt"),
  ...of("explain", "ExplainStmt"),
  ...of("show", "VariableShowStmt"),
  ...of("set", "VariableSetStmt DiscardStmt ConstraintsSetStmt AlterSystemStmt AlterDatabaseSetStmt"),
  ...of("transaction", "TransactionStmt"),
  ...of("lock", "LockStmt"),
  ...of("call", "CallStmt"),
  ...of("prepare", "PrepareStmt DeallocateStmt"),
  ...of("cursor", "DeclareCursorStmt FetchStmt ClosePortalStmt"),
  ...of("notify", "NotifyStmt ListenStmt UnlistenStmt"),
  ...of("maintain", "VacuumStmt ClusterStmt ReindexStmt CheckPointStmt RefreshMatViewStmt"),
  ...of(
    "create",
    "CreateStmt CreateTableAsStmt ViewStmt IndexStmt CreateSeqStmt CreateSchemaStmt CreateDomainStmt CompositeTypeStmt " +
      "CreateEnumStmt CreateRangeStmt CreateStatsStmt CreatedbStmt CreateTableSpaceStmt",
  ),
  ...of(
    "alter",
    "AlterTableStmt AlterSeqStmt AlterDomainStmt AlterEnumStmt AlterTypeStmt AlterStatsStmt AlterCollationStmt " +
      "AlterDatabaseStmt AlterDatabaseRefreshCollStmt AlterTableSpaceOptionsStmt AlterTableMoveAllStmt RenameStmt " +
      "AlterObjectSchemaStmt AlterObjectDependsStmt CommentStmt AlterTSDictionaryStmt AlterTSConfigurationStmt",
  ),
  ...of("drop", "DropStmt DropdbStmt DropTableSpaceStmt DropOwnedStmt DropSubscriptionStmt DropUserMappingStmt"),
  ...of(
    "grant",
    "GrantStmt GrantRoleStmt AlterDefaultPrivilegesStmt CreateRoleStmt AlterRoleStmt AlterRoleSetStmt DropRoleStmt " +
      "AlterOwnerStmt ReassignOwnedStmt CreatePolicyStmt AlterPolicyStmt SecLabelStmt",
  ),
  // What brings code, or the way to another server, into the database.
  ...of(
    "code",
    "CreateFunctionStmt AlterFunctionStmt CreateTrigStmt RuleStmt CreateEventTrigStmt AlterEventTrigStmt " +
      "CreatePLangStmt CreateExtensionStmt AlterExtensionStmt AlterExtensionContentsStmt LoadStmt DefineStmt " +
      "CreateCastStmt CreateConversionStmt CreateTransformStmt CreateAmStmt CreateOpClassStmt CreateOpFamilyStmt " +
      "AlterOpFamilyStmt AlterOperatorStmt CreateFdwStmt AlterFdwStmt CreateForeignServerStmt AlterForeignServerStmt " +
      "CreateForeignTableStmt CreateUserMappingStmt AlterUserMappingStmt ImportForeignSchemaStmt CreatePublicationStmt " +
      "AlterPublicationStmt CreateSubscriptionStmt AlterSubscriptionStmt",
  ),
]);

function of(kind: string, nodes: string): readonly (readonly [string, string])[] {
  return nodes.split(" ").map((node) => [node, kind]);
}

/** Nodes that need no more than that what is in them is read. */
export const plain: ReadonlySet<string> = new Set(
  (
    "Integer Float Boolean String BitString List A_Const Alias RangeVar TableFunc IntoClause NamedArgExpr BoolExpr " +
    "SubLink CollateClause CaseExpr CaseWhen RowExpr CoalesceExpr MinMaxExpr SQLValueFunction XmlExpr XmlSerialize " +
    "JsonFormat JsonReturning JsonValueExpr JsonIsPredicate JsonBehavior JsonOutput JsonArgument JsonFuncExpr " +
    "JsonTablePathSpec JsonTable JsonTableColumn JsonKeyValue JsonParseExpr JsonScalarExpr JsonSerializeExpr " +
    "JsonObjectConstructor JsonArrayConstructor JsonArrayQueryConstructor JsonAggConstructor JsonObjectAgg JsonArrayAgg " +
    "NullTest BooleanTest SetToDefault CurrentOfExpr InferenceElem JoinExpr TypeName ColumnRef ParamRef A_Expr TypeCast " +
    "RoleSpec FuncCall A_Star A_Indices A_Indirection A_ArrayExpr ResTarget MultiAssignRef SortBy WindowDef " +
    "RangeSubselect RangeFunction RangeTableFunc RangeTableFuncCol RangeTableSample ColumnDef TableLikeClause IndexElem " +
    "DefElem LockingClause PartitionElem PartitionSpec PartitionBoundSpec PartitionRangeDatum PartitionCmd GroupingSet " +
    "GroupingFunc MergeSupportFunc ReturningOption InferClause OnConflictClause WithClause CommonTableExpr MergeWhenClause " +
    "AlterTableCmd ReplicaIdentityStmt ObjectWithArgs AccessPriv Constraint CreateOpClassItem StatsElem FunctionParameter " +
    "VacuumRelation TriggerTransition PublicationObjSpec PublicationTable CTESearchClause CTECycleClause ReturnStmt " +
    "ATAlterConstraint"
  ).split(" "),
);

/** Kinds of statements that leave everything as it is. */
export const quiet: ReadonlySet<string> = new Set(["select", "explain", "show"]);

/**
 * Functions of PostgreSQL that compute on what they are given, and touch nothing else. Every other function may write,
 * wait, read files, run SQL or reach another server: `setval`, `pg_sleep`, `pg_read_file`, `query_to_xml`, `dblink`.
 */
export const pure: ReadonlySet<string> = new Set(
  // Aggregates and windows.
  (
    "count sum avg min max stddev stddev_pop stddev_samp variance var_pop var_samp corr covar_pop covar_samp regr_slope " +
    "regr_intercept regr_r2 bool_and bool_or every bit_and bit_or any_value string_agg array_agg json_agg jsonb_agg " +
    "json_object_agg jsonb_object_agg percentile_cont percentile_disc mode rank dense_rank percent_rank cume_dist " +
    "row_number ntile lag lead first_value last_value nth_value grouping " +
    // Numbers.
    "abs ceil ceiling floor round trunc sign sqrt cbrt exp ln log log10 power pow mod div gcd lcm greatest least random " +
    "degrees radians sin cos tan asin acos atan atan2 pi width_bucket " +
    // Text.
    "length char_length character_length octet_length bit_length lower upper initcap btrim ltrim rtrim trim substr substring " +
    "left right replace translate reverse strpos position split_part concat concat_ws format to_char " +
    "to_number ascii chr md5 sha256 encode decode overlay starts_with quote_ident quote_literal quote_nullable " +
    "regexp_replace regexp_match regexp_matches regexp_split_to_array regexp_split_to_table regexp_count regexp_like " +
    "regexp_substr regexp_instr string_to_array string_to_table unnest similar_escape like_escape " +
    // Times.
    "now age date_part date_trunc date_bin extract make_date make_time make_timestamp make_timestamptz make_interval " +
    "to_date to_timestamp clock_timestamp statement_timestamp transaction_timestamp timeofday justify_days justify_hours " +
    "justify_interval isfinite timezone date overlaps " +
    // JSON and arrays.
    "to_json to_jsonb row_to_json array_to_json json_build_object jsonb_build_object json_build_array jsonb_build_array " +
    "json_object jsonb_object json_array_length jsonb_array_length json_array_elements jsonb_array_elements " +
    "json_array_elements_text jsonb_array_elements_text json_each jsonb_each json_each_text jsonb_each_text " +
    "json_object_keys jsonb_object_keys json_extract_path json_extract_path_text jsonb_extract_path jsonb_extract_path_text " +
    "json_typeof jsonb_typeof jsonb_set jsonb_insert jsonb_strip_nulls json_strip_nulls jsonb_pretty jsonb_path_query " +
    "jsonb_path_exists jsonb_path_query_array jsonb_path_query_first jsonb_path_match array_length array_upper array_lower " +
    "array_ndims cardinality array_append array_prepend array_cat array_remove array_replace array_position " +
    "array_positions array_to_string array_fill generate_subscripts " +
    // Search, and what the session is.
    "to_tsvector to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery ts_rank ts_rank_cd ts_headline " +
    "generate_series nullif coalesce version current_database current_schema pg_typeof num_nulls num_nonnulls " +
    "gen_random_uuid uuidv4 uuidv7 pg_column_size pg_size_pretty"
  ).split(" "),
);
