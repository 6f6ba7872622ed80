"""The style sheet of the HTML report: light, dark and print; colours that colour-blind readers can tell apart."""

STYLE = """
:root { color-scheme: light dark; --bg: #ffffff; --card: #f6f7f9; --ink: #1b1f24; --muted: #57606a; --rule: #d5d9de;
  --grid: #e4e7ea; --blue: #0067b1; --purple: #8a3ffc; --bad: #c2410c; --lost: #d55e0040; --good: #00795a; --warn: #8a5a00;
  --quiet: #8c959f14; --fault: #d55e0016; --agent: #0067b114; --settle: #00795a14; --challenge: #8a3ffc14;
  --quiet-band: #8c959f40; --fault-band: #d55e0048; --agent-band: #0067b140; --settle-band: #00795a40;
  --challenge-band: #8a3ffc40; }
@media (prefers-color-scheme: dark) { :root { --bg: #14171b; --card: #1c2026; --ink: #e6e9ed; --muted: #9aa4af; --rule: #3a414a;
  --grid: #2a3038; --blue: #58a6ff; --purple: #c19aff; --bad: #ff8a4c; --lost: #ff8a4c40; --good: #3fc79a; --warn: #e0b04a;
  --quiet: #8c959f14; --fault: #ff8a4c1c; --agent: #58a6ff1a; --settle: #3fc79a16; --challenge: #c19aff1a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 24px 28px 64px; background: var(--bg); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", "Liberation Sans", sans-serif; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 2px; text-wrap: balance; }
h2, h3 { font-size: 18px; margin: 34px 0 10px; }
p.sub { margin: 0; color: var(--muted); }
a { color: var(--blue); }
header h2, header h3 { font-size: 20px; margin: 0; }
.alone { border-top: 1px solid var(--rule); margin-top: 32px; padding-top: 24px; }
section.trial { padding-bottom: 12px; } details section.trial { padding-top: 8px; }
header { display: flex; gap: 20px; align-items: flex-start; justify-content: space-between; flex-wrap: wrap; }
.badge { display: inline-block; padding: 2px 12px; border-radius: 6px; border: 2px solid; font-weight: 700; font-size: 17px;
  white-space: nowrap; }
.badge.small { font-size: 13px; border-width: 1.5px; padding: 0 8px; }
.pass { color: var(--good); } .fail { color: var(--bad); } .invalid { color: var(--warn); }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(190px, 1fr)); gap: 10px; margin: 20px 0 0; padding: 0; }
.facts div { background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: 8px 12px; min-width: 0; }
.facts dt { color: var(--muted); font-size: 12.5px; } .facts dd { margin: 0; font-size: 17px; font-weight: 600;
  overflow-wrap: anywhere; }
.facts small { display: block; font-size: 12.5px; font-weight: 400; color: var(--muted); }
.scroll { overflow-x: auto; } .scroll:focus-visible { outline: 2px solid var(--blue); }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
caption { text-align: left; color: var(--muted); font-size: 13px; padding-bottom: 4px; }
th, td { text-align: left; vertical-align: top; padding: 6px 10px 6px 0; border-bottom: 1px solid var(--rule);
  overflow-wrap: break-word; }
td.code { overflow-wrap: anywhere; }
th { font-weight: 600; color: var(--muted); font-size: 13px; } tbody th { color: var(--ink); font-size: 14px; }
td.num, th.num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.state { white-space: nowrap; font-weight: 600; }
tr.missed td, tr.missed th { background: color-mix(in srgb, var(--bad) 7%, transparent); }
code, pre, td.code { font-family: ui-monospace, "SF Mono", "Noto Sans Mono", "Liberation Mono", monospace; font-size: 13px; }
pre { background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: 10px 12px; margin: 8px 0;
  white-space: pre-wrap;
  overflow-wrap: anywhere; max-height: 480px; overflow-y: auto; }
details { border: 1px solid var(--rule); border-radius: 8px; padding: 0 12px; margin: 8px 0; }
summary { cursor: pointer; padding: 8px 0; font-weight: 600; }
footer { margin-top: 40px; color: var(--muted); font-size: 13px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; color: var(--muted); font-size: 13px; margin: 6px 0 0; padding: 0;
  list-style: none; }
.legend svg { width: 26px; height: 12px; vertical-align: -1px; margin-right: 5px; }
svg.timeline { display: block; width: 100%; min-width: 820px; height: auto; background: var(--bg); }
svg.spark { width: 150px; height: 26px; display: block; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", "Noto Sans", "Liberation Sans", sans-serif; fill: var(--ink); }
svg text.muted, svg text.tick { fill: var(--muted); font-size: 11px; } svg text.lane { font-weight: 600; font-size: 12.5px; }
svg text.band-label { font-size: 11.5px; font-weight: 600; } svg text.recovered-label { fill: var(--good); font-weight: 600; }
.grid { stroke: var(--grid); stroke-width: 1; } .slo { stroke: var(--muted); stroke-width: 1; stroke-dasharray: 3 3; }
.ok { fill: none; stroke: var(--blue); stroke-width: 1.75; stroke-linejoin: round; } .lost { fill: var(--lost); }
.p99 { fill: none; stroke: var(--purple); stroke-width: 1.5; stroke-linejoin: round; }
.alert { fill: var(--bad); } .act { fill: var(--blue); } .act.failed { fill: none; stroke: var(--bad); stroke-width: 2; }
.act.submit { fill: var(--ink); } .recovered { stroke: var(--good); stroke-width: 2; stroke-dasharray: 6 3; }
.phase.quiet { fill: var(--quiet); } .phase.fault { fill: var(--fault); } .phase.agent { fill: var(--agent); }
.phase.settle { fill: var(--settle); } .phase.challenge { fill: var(--challenge); }
.band.quiet { fill: var(--quiet-band); } .band.fault { fill: var(--fault-band); } .band.agent { fill: var(--agent-band); }
.band.settle { fill: var(--settle-band); } .band.challenge { fill: var(--challenge-band); }
@media print { :root { color-scheme: light; --bg: #fff; --card: #fff; --ink: #000; --muted: #444; --rule: #bbb; --grid: #ddd;
  --blue: #0067b1; --purple: #8a3ffc; --bad: #c2410c; --good: #00795a; --warn: #8a5a00; --lost: #d55e0040; }
  body { max-width: none; padding: 0; font-size: 11pt; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .scroll { overflow: visible; } svg.timeline { min-width: 0; } pre { max-height: none; overflow: visible; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
  tr, details, section.trial svg { break-inside: avoid; } h2 { break-after: avoid; } }
"""
