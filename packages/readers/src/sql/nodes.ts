/** The effect of a node of PostgreSQL's grammar, without its members. The reader always reads those. */
export type Role =
  /** It is a statement of the kind that the role starts with. */
  | `${string} statement`
  /** It calls nothing and reads nothing. */
  | "plain"
  /** It names a table. */
  | "table"
  /** It calls a function by its name. */
  | "function"
  /** It calls the function of an operator. */
  | "operator"
  /** A name after a dot is a column, or calls a function. */
  | "column"
  /** A cast runs the functions of the type. */
  | "type"
  /** It calls a sampling method, which is a function. */
  | "sample"
  /** It locks rows, and names only tables of `FROM`. */
  | "lock"
  /** A branch of `MERGE` is a statement without a node of its own. */
  | "merge"
  /** It runs code that the gate does not read, or the parser never produces it. */
  | "refused";

/** The role of each node type. A test replaces roles and expects the differential test to fail. */
export type NodeTable = ReadonlyMap<string, Role>;

export const nodes: NodeTable = new Map<string, Role>([
  ...each("select statement", "SelectStmt"),
  ...each("insert statement", "InsertStmt"),
  ...each("update statement", "UpdateStmt"),
  ...each("delete statement", "DeleteStmt"),
  ...each("merge statement", "MergeStmt"),
  ...each("truncate statement", "TruncateStmt"),
  ...each("copy statement", "CopyStmt"),
  ...each("explain statement", "ExplainStmt"),
  ...each("show statement", "VariableShowStmt"),
  ...each("set statement", "VariableSetStmt DiscardStmt ConstraintsSetStmt AlterSystemStmt AlterDatabaseSetStmt"),
  ...each("transaction statement", "TransactionStmt"),
  ...each("lock statement", "LockStmt"),
  ...each("call statement", "CallStmt"),
  ...each("prepare statement", "PrepareStmt DeallocateStmt"),
  ...each("cursor statement", "DeclareCursorStmt FetchStmt ClosePortalStmt"),
  ...each("notify statement", "NotifyStmt ListenStmt UnlistenStmt"),
  ...each("maintain statement", "VacuumStmt ClusterStmt ReindexStmt CheckPointStmt RefreshMatViewStmt"),
  ...each(
    "create statement",
    "CreateStmt CreateTableAsStmt ViewStmt IndexStmt CreateSeqStmt CreateSchemaStmt CreateDomainStmt CompositeTypeStmt " +
      "CreateEnumStmt CreateRangeStmt CreateStatsStmt CreatedbStmt CreateTableSpaceStmt",
  ),
  ...each(
    "alter statement",
    "AlterTableStmt AlterSeqStmt AlterDomainStmt AlterEnumStmt AlterTypeStmt AlterStatsStmt AlterCollationStmt " +
      "AlterDatabaseStmt AlterDatabaseRefreshCollStmt AlterTableSpaceOptionsStmt AlterTableMoveAllStmt RenameStmt " +
      "AlterObjectSchemaStmt AlterObjectDependsStmt CommentStmt AlterTSDictionaryStmt AlterTSConfigurationStmt",
  ),
  ...each(
    "drop statement",
    "DropStmt DropdbStmt DropTableSpaceStmt DropOwnedStmt DropSubscriptionStmt DropUserMappingStmt",
  ),
  ...each(
    "grant statement",
    "GrantStmt GrantRoleStmt AlterDefaultPrivilegesStmt CreateRoleStmt AlterRoleStmt AlterRoleSetStmt DropRoleStmt " +
      "AlterOwnerStmt ReassignOwnedStmt CreatePolicyStmt AlterPolicyStmt SecLabelStmt",
  ),
  // Nodes that bring code, or access to another server, into the database.
  ...each(
    "code statement",
    "CreateFunctionStmt AlterFunctionStmt CreateTrigStmt RuleStmt CreateEventTrigStmt AlterEventTrigStmt " +
      "CreatePLangStmt CreateExtensionStmt AlterExtensionStmt AlterExtensionContentsStmt LoadStmt DefineStmt " +
      "CreateCastStmt CreateConversionStmt CreateTransformStmt CreateAmStmt CreateOpClassStmt CreateOpFamilyStmt " +
      "AlterOpFamilyStmt AlterOperatorStmt CreateFdwStmt AlterFdwStmt CreateForeignServerStmt AlterForeignServerStmt " +
      "CreateForeignTableStmt CreateUserMappingStmt AlterUserMappingStmt ImportForeignSchemaStmt CreatePublicationStmt " +
      "AlterPublicationStmt CreateSubscriptionStmt AlterSubscriptionStmt",
  ),
  ...each("table", "RangeVar"),
  ...each("function", "FuncCall"),
  ...each("operator", "A_Expr SubLink SortBy"),
  ...each("column", "ColumnRef A_Indirection"),
  ...each("type", "TypeName"),
  ...each("sample", "RangeTableSample"),
  ...each("lock", "LockingClause"),
  ...each("merge", "MergeWhenClause"),
  ...each(
    "plain",
    "Integer Float Boolean String BitString List A_Const Alias TableFunc IntoClause NamedArgExpr BoolExpr CollateClause " +
      "CaseExpr CaseWhen RowExpr CoalesceExpr MinMaxExpr SQLValueFunction XmlExpr XmlSerialize JsonFormat JsonReturning " +
      "JsonValueExpr JsonIsPredicate JsonBehavior JsonOutput JsonArgument JsonFuncExpr JsonTablePathSpec JsonTable " +
      "JsonTableColumn JsonKeyValue JsonParseExpr JsonScalarExpr JsonSerializeExpr JsonObjectConstructor " +
      "JsonArrayConstructor JsonArrayQueryConstructor JsonAggConstructor JsonObjectAgg JsonArrayAgg NullTest BooleanTest " +
      "SetToDefault CurrentOfExpr InferenceElem JoinExpr ParamRef TypeCast RoleSpec A_Star A_Indices A_ArrayExpr ResTarget " +
      "MultiAssignRef WindowDef RangeSubselect RangeFunction RangeTableFunc RangeTableFuncCol ColumnDef TableLikeClause " +
      "IndexElem DefElem PartitionElem PartitionSpec PartitionBoundSpec PartitionRangeDatum PartitionCmd GroupingSet " +
      "GroupingFunc MergeSupportFunc ReturningOption InferClause OnConflictClause WithClause CommonTableExpr AlterTableCmd " +
      "ReplicaIdentityStmt ObjectWithArgs AccessPriv Constraint CreateOpClassItem StatsElem FunctionParameter " +
      "VacuumRelation TriggerTransition PublicationObjSpec PublicationTable CTESearchClause CTECycleClause ReturnStmt " +
      "ATAlterConstraint ReturningClause",
  ),
  // `DO` and `EXECUTE` run code that the gate does not read. Only the server produces the others, from the parser's tree.
  ...each(
    "refused",
    "ParseResult ScanResult OidList IntList Var Param Aggref WindowFunc WindowFuncRunCondition SubscriptingRef FuncExpr " +
      "OpExpr DistinctExpr NullIfExpr ScalarArrayOpExpr SubPlan AlternativeSubPlan FieldSelect FieldStore RelabelType " +
      "CoerceViaIO ArrayCoerceExpr ConvertRowtypeExpr CollateExpr CaseTestExpr ArrayExpr RowCompareExpr JsonConstructorExpr " +
      "JsonExpr JsonTablePath JsonTablePathScan JsonTableSiblingJoin MergeAction CoerceToDomain CoerceToDomainValue " +
      "NextValueExpr ReturningExpr TargetEntry RangeTblRef FromExpr OnConflictExpr Query RangeTblEntry RTEPermissionInfo " +
      "RangeTblFunction TableSampleClause WithCheckOption SortGroupClause WindowClause RowMarkClause RawStmt " +
      "SetOperationStmt PLAssignStmt DoStmt InlineCodeBlock CallContext ExecuteStmt ScanToken SummaryResult FilterColumn Table Function",
  ),
]);

/**
 * The node type of each member whose value does not name its type. The key is the member's name, after the node's name if
 * members of that name differ in type.
 */
export const memberTypes: ReadonlyMap<string, string> = new Map([
  ...each("Alias", "alias join_using_alias"),
  ...each("BitString", "bsval"),
  ...each("Boolean", "boolval"),
  ...each("CTECycleClause", "cycle_clause"),
  ...each("CTESearchClause", "search_clause"),
  ...each("CollateClause", "collClause"),
  ...each("CreateStmt", "base"),
  ...each("Float", "fval"),
  ...each("FuncCall", "funccall"),
  ...each("GrantStmt", "action"),
  ...each("InferClause", "infer"),
  ...each("Integer", "ival"),
  ...each("IntoClause", "into intoClause"),
  ...each("JsonAggConstructor", "constructor"),
  ...each("JsonBehavior", "on_empty on_error"),
  ...each("JsonFormat", "format"),
  ...each("JsonKeyValue", "JsonObjectAgg.arg"),
  ...each("JsonOutput", "output"),
  ...each("JsonReturning", "returning"),
  ...each("JsonTablePathSpec", "pathspec"),
  ...each("JsonValueExpr", "JsonArrayAgg.arg context_item expr val value"),
  ...each("ObjectWithArgs", "CreateOpClassItem.name fromsql func opername tosql"),
  ...each("OnConflictClause", "onConflictClause"),
  ...each("PartitionBoundSpec", "bound partbound"),
  ...each("PartitionSpec", "partspec"),
  ...each("PublicationTable", "pubtable"),
  ...each("RangeVar", "PartitionCmd.name constrrel identitySequence pktable rel relation sequence table typevar view"),
  ...each("ReturningClause", "returningClause"),
  ...each("RoleSpec", "authrole grantor newowner newrole owner role user"),
  ...each("SelectStmt", "larg rarg"),
  ...each("String", "extname sval"),
  ...each("TypeName", "argType datatype ofTypename returnType sourcetype storedtype targettype typeName type_name"),
  ...each("VariableSetStmt", "setstmt"),
  ...each("WindowDef", "over"),
  ...each("WithClause", "withClause"),
]);

function each<Kind extends string>(kind: Kind, names: string): readonly (readonly [string, Kind])[] {
  return names.split(" ").map((name) => [name, kind]);
}

/** Kinds of statements that change nothing. */
export const quiet: ReadonlySet<string> = new Set(["select", "explain", "show"]);
