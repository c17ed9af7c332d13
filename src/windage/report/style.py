"""Style sheet and tooltip script of the report, inlined so that the page needs nothing else."""

from __future__ import annotations

__all__ = ["CHART_STYLE", "SCRIPT", "STYLE"]

_COLOURS_LIGHT = "--c1:#2563c9;--c2:#d0660a;--c3:#1f8a5b;--c4:#7d4fc4;--c5:#8a8f98;--c6:#c4314b;"
_COLOURS_DARK = "--c1:#6ea3f7;--c2:#f0a058;--c3:#5fc796;--c4:#b596ee;--c5:#8b93a1;--c6:#f07f93;"
_PAPER_LIGHT = "--bg:#f7f8fa;--card:#ffffff;--ink:#1c2129;--dim:#5f6875;--rule:#e3e6eb;--mark:#dbe8fd;"
_PAPER_DARK = "--bg:#12151a;--card:#1a1e25;--ink:#e4e8ee;--dim:#98a2b0;--rule:#2c323c;--mark:#22406e;"

_STROKES = "".join(f".s{i}{{stroke:var(--c{i});fill:none}}.f{i}{{fill:var(--c{i})}}" for i in range(1, 7))

CHART_STYLE = (
    f":root{{{_COLOURS_LIGHT}{_PAPER_LIGHT}}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_COLOURS_DARK}{_PAPER_DARK}}}}}"
    f"{_STROKES}"
    "path,line{stroke-width:1.9;stroke-linejoin:round;stroke-linecap:round}"
    ".thin{stroke-width:1.3}.faint{opacity:.28;stroke-width:1.1}"
    ".dashed{stroke-dasharray:7 5;stroke-width:2.2;stroke-linecap:butt}"
    ".band{opacity:.18}.area{opacity:.85}"
    ".grid{stroke:var(--rule);stroke-width:1}.axis{stroke:var(--dim);stroke-width:1}"
    "text{font:11px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--dim)}text.legend{fill:var(--ink)}"
)
"""Colours and strokes of charts, light and dark; also inside the standalone picture."""

STYLE = (
    CHART_STYLE
    + """
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}
main{max-width:1480px;margin:0 auto;padding:28px 24px 60px}
h1{font-size:26px;margin:0;letter-spacing:-.01em}h2{font-size:15.5px;margin:0 0 2px}
.sub{color:var(--dim);margin:2px 0 20px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin-bottom:18px}
.tile{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:10px 14px}
.tile b{display:block;font-size:20px;font-variant-numeric:tabular-nums;letter-spacing:-.01em;white-space:nowrap}
.tile span{color:var(--dim);font-size:12.5px}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,560px),1fr));gap:14px}
section{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:14px 18px;min-width:0}
.plots section{display:flex;flex-direction:column}.plots svg{margin-top:auto}
section>p{color:var(--dim);font-size:13px;margin:0 0 6px;max-width:76ch}
section.wide{margin-top:14px}
svg{display:block;width:100%;height:auto;overflow:visible}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:14px}
th,td{text-align:left;padding:4px 18px 4px 0;border-bottom:1px solid var(--rule);vertical-align:top}
th{color:var(--dim);font-weight:500}td.n{text-align:right}
.scroll{overflow-x:auto}
details{margin-top:14px}summary{cursor:pointer;font-weight:600;font-size:15.5px}
pre{margin:8px 0 0;white-space:pre-wrap;overflow-wrap:anywhere;
font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace}
.sample{border-top:1px solid var(--rule);padding:10px 0}
.sample header span{color:var(--dim);font-size:13px;margin-left:8px}
.sample pre{max-height:420px;overflow-y:auto}
mark{background:var(--mark);color:inherit;border-radius:3px;padding:1px 0}
.good{color:var(--c3)}.poor{color:var(--c6)}
.samples-head mark{padding:1px 5px}
#tip{position:fixed;pointer-events:none;display:none;background:var(--card);border:1px solid var(--rule);
border-radius:8px;padding:6px 10px;font-size:12.5px;
box-shadow:0 4px 16px rgba(0,0,0,.16);font-variant-numeric:tabular-nums;z-index:2}
#tip i{display:inline-block;width:9px;height:9px;border-radius:2px;margin-right:6px}
"""
)

SCRIPT = """
const tip=document.getElementById('tip');
const plain=text=>String(text).replace(/[&<>"]/g,c=>`&#${c.charCodeAt(0)};`);
for(const svg of document.querySelectorAll('svg.chart')){
  const data=JSON.parse(svg.dataset.chart);
  const rule=document.createElementNS(svg.namespaceURI,'line');
  rule.setAttribute('class','axis');rule.setAttribute('y1',svg.dataset.top);rule.setAttribute('y2',svg.dataset.bottom);
  rule.style.display='none';svg.appendChild(rule);
  svg.addEventListener('mousemove',event=>{
    const at=new DOMPoint(event.clientX,event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
    let best=null;
    for(const s of data.series)for(const p of s.points)if(best===null||Math.abs(p[0]-at)<Math.abs(best[0]-at))best=p;
    if(best===null)return;
    rule.setAttribute('x1',best[0]);rule.setAttribute('x2',best[0]);rule.style.display='';
    const rows=[];
    for(const s of data.series){
      const p=s.points.find(q=>q[0]===best[0]);
      if(p)rows.push(`<div><i style="background:var(--c${s.colour})"></i>${plain(s.name)} <b>${plain(p[2])}</b></div>`);
    }
    tip.innerHTML=`<div>${plain(data.x)} ${plain(best[1])}</div>`+rows.join('');
    tip.style.display='block';
    tip.style.left=Math.min(event.clientX+14,innerWidth-tip.offsetWidth-8)+'px';
    tip.style.top=Math.min(event.clientY+14,innerHeight-tip.offsetHeight-8)+'px';
  });
  svg.addEventListener('mouseleave',()=>{tip.style.display='none';rule.style.display='none'});
}
"""
"""Crosshair and tooltip."""
