-- The tables of the ledgers spread over the nodes of a Citus cluster, by the ledger's id: all rows of one ledger are on one
-- node, and a batch is a transaction there. Run it once on the coordinator, after `svc-gate migrate` and before the first gate.
SELECT create_distributed_table('svc_gate.ledgers', 'ledger', shard_count => 64);
SELECT create_distributed_table('svc_gate.receipts', 'ledger', colocate_with => 'svc_gate.ledgers');
SELECT create_distributed_table('svc_gate.effects', 'ledger', colocate_with => 'svc_gate.ledgers');
SELECT create_distributed_table('svc_gate.counters', 'ledger', colocate_with => 'svc_gate.ledgers');
SELECT create_distributed_table('svc_gate.contracts', 'ledger', colocate_with => 'svc_gate.ledgers');
SELECT create_distributed_table('svc_gate.key_uses', 'ledger', colocate_with => 'svc_gate.ledgers');
SELECT create_distributed_table('svc_gate.nodes', 'ledger', colocate_with => 'svc_gate.ledgers');
