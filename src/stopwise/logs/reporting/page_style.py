"""The look of the report."""

STYLE = """
:root{color-scheme:light}
*{box-sizing:border-box}
body{margin:0;background:#f4f6f8;color:#1c2430;font:15px/1.55 system-ui,-apple-system,"Segoe UI",
Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1060px;margin:0 auto;padding:28px 20px 60px}
header,section,details{background:#fff;border:1px solid #e3e7ec;border-radius:12px;
padding:24px 28px;margin:0 0 18px}
.eyebrow{margin:0 0 8px;color:#5d6875;font-size:13px;overflow-wrap:anywhere}
h1{font-size:27px;line-height:1.3;margin:0 0 8px;font-weight:650;letter-spacing:-.01em}
.lead{font-size:17px;line-height:1.5;margin:0 0 20px}
h2{font-size:18px;margin:0 0 14px}
h3{font-size:15px;margin:0 0 8px}
.scroll+h3,p+h3{margin-top:22px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:12px}
.tile{background:#f4f6f8;border-radius:10px;padding:14px 16px}
.tile .k{font-size:12px;color:#5d6875}
.tile .v{font-size:22px;font-weight:650;line-height:1.25;margin:2px 0;overflow-wrap:anywhere}
.tile .n{font-size:12px;color:#5d6875}
.doubt{border-left:4px solid #E69F00;background:#fdf6e8;border-radius:0 8px 8px 0;
padding:10px 16px;margin:0 0 18px}
.note{color:#5d6875;font-size:13px;margin:12px 0}
header .note{margin:16px 0 0}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(340px,1fr));gap:16px;
align-items:start}
.card{border:1px solid #e3e7ec;border-top:4px solid;border-radius:10px;padding:14px 18px}
ul{margin:0;padding-left:20px}
li{margin:0 0 8px}
.warnings{list-style:none;padding:0}
.warnings li{border-left:4px solid #E69F00;background:#fdf6e8;border-radius:0 8px 8px 0;
padding:9px 14px}
.warnings b{display:block}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:16px}
figure{margin:0;border:1px solid #e3e7ec;border-radius:10px;padding:12px 14px}
figure.chosen{border:2px solid #1c2430}
figcaption{font-weight:600;font-size:14px;margin:0 0 6px}
svg{display:block;width:100%;height:auto;font-family:inherit}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th{text-align:left;font-weight:500;color:#5d6875;font-size:12px;border-bottom:1px solid #d5dbe1;
padding:6px 14px 6px 0;vertical-align:bottom}
td{padding:7px 14px 7px 0;border-bottom:1px solid #eef1f4;vertical-align:top}
td:first-child{white-space:nowrap}
tr.now td{font-weight:650}
.dot{display:inline-block;width:10px;height:10px;border-radius:50%;margin-right:8px}
code{background:#eef1f4;border-radius:4px;padding:1px 5px;font-size:13px}
summary{cursor:pointer;font-weight:600}
@media print{body{background:#fff}
header,section,details{break-inside:avoid;border:none;padding:8px 0}}
@media (max-width:640px){header,section,details{padding:18px 16px}h1{font-size:20px}
.grid,.two{grid-template-columns:1fr}
td{padding-right:10px}td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:84px}}
"""
