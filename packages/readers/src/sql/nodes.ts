/** The effect of a node of PostgreSQL's grammar, without its members. The reader always reads those. */
export type Role =
  /** It is a statement of the kind that the role begins with. */
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

const statements: readonly (readonly [string, Role])[] = [
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
  // Nodes that bring code, or access to another server, into the database.
  ...of(
    "code",
    "CreateFunctionStmt AlterFunctionStmt CreateTrigStmt RuleStmt CreateEventTrigStmt AlterEventTrigStmt " +
      "CreatePLangStmt CreateExtensionStmt AlterExtensionStmt AlterExtensionContentsStmt LoadStmt DefineStmt " +
      "CreateCastStmt CreateConversionStmt CreateTransformStmt CreateAmStmt CreateOpClassStmt CreateOpFamilyStmt " +
      "AlterOpFamilyStmt AlterOperatorStmt CreateFdwStmt AlterFdwStmt CreateForeignServerStmt AlterForeignServerStmt " +
      "CreateForeignTableStmt CreateUserMappingStmt AlterUserMappingStmt ImportForeignSchemaStmt CreatePublicationStmt " +
      "AlterPublicationStmt CreateSubscriptionStmt AlterSubscriptionStmt",
  ),
];

function of(kind: string, nodes: string): readonly (readonly [string, Role])[] {
  return each(`${kind} statement`, nodes);
}

function each(role: Role, nodes: string): readonly (readonly [string, Role])[] {
  return nodes.split(" ").map((node) => [node, role]);
}

export const nodes: NodeTable = new Map<string, Role>([
  ...statements,
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
  ...members("Alias", "alias join_using_alias"),
  ...members("BitString", "bsval"),
  ...members("Boolean", "boolval"),
  ...members("CTECycleClause", "cycle_clause"),
  ...members("CTESearchClause", "search_clause"),
  ...members("CollateClause", "collClause"),
  ...members("CreateStmt", "base"),
  ...members("Float", "fval"),
  ...members("FuncCall", "funccall"),
  ...members("GrantStmt", "action"),
  ...members("InferClause", "infer"),
  ...members("Integer", "ival"),
  ...members("IntoClause", "into intoClause"),
  ...members("JsonAggConstructor", "constructor"),
  ...members("JsonBehavior", "on_empty on_error"),
  ...members("JsonFormat", "format"),
  ...members("JsonKeyValue", "JsonObjectAgg.arg"),
  ...members("JsonOutput", "output"),
  ...members("JsonReturning", "returning"),
  ...members("JsonTablePathSpec", "pathspec"),
  ...members("JsonValueExpr", "JsonArrayAgg.arg context_item expr val value"),
  ...members("ObjectWithArgs", "CreateOpClassItem.name fromsql func opername tosql"),
  ...members("OnConflictClause", "onConflictClause"),
  ...members("PartitionBoundSpec", "bound partbound"),
  ...members("PartitionSpec", "partspec"),
  ...members("PublicationTable", "pubtable"),
  ...members(
    "RangeVar",
    "PartitionCmd.name constrrel identitySequence pktable rel relation sequence table typevar view",
  ),
  ...members("ReturningClause", "returningClause"),
  ...members("RoleSpec", "authrole grantor newowner newrole owner role user"),
  ...members("SelectStmt", "larg rarg"),
  ...members("String", "extname sval"),
  ...members("TypeName", "argType datatype ofTypename returnType sourcetype storedtype targettype typeName type_name"),
  ...members("VariableSetStmt", "setstmt"),
  ...members("WindowDef", "over"),
  ...members("WithClause", "withClause"),
]);

function members(type: string, names: string): readonly (readonly [string, string])[] {
  return names.split(" ").map((name) => [name, type]);
}

/** Kinds of statements that change nothing. */
export const quiet: ReadonlySet<string> = new Set(["select", "explain", "show"]);
