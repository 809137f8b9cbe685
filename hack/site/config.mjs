// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Configuration of VitePress, which fails for dead links. hack/site.sh sets the variables and copies this file.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const { SITE_ROOT: root, SITE_VERSION: version, SITE_BASE: base, SITE_OUT: outDir } = process.env
const srcDir = join(root, 'docs')
const repository = 'https://github.com/fleetgate/fleetgate'
const sections = JSON.parse(readFileSync(join(root, 'hack/site/nav.json'), 'utf8'))

const title = page => readFileSync(join(srcDir, page), 'utf8').match(/^# (.*)$/m)[1]
const asIndex = path => path.replace(/README\.md$/, 'index.md')

// Anchors are those of GitHub, which test/documents checks.
const slugify = text => text.toLowerCase().replace(/[^a-z0-9 _-]/g, '').replaceAll(' ', '-')

// rewriteLink leads a link to a file outside docs to the repository, and a link to README.md to the page of its folder.
function rewriteLink(href, page) {
  if (/^[a-z]+:/.test(href) || href.startsWith('#')) return href
  const [path, anchor] = href.split('#')
  const target = resolve(dirname(page), path)
  if (!existsSync(target)) throw new Error(`${page} links to ${href}, which does not exist`)
  const hash = anchor ? `#${anchor}` : ''
  const inDocs = relative(srcDir, target)
  if (inDocs.startsWith('..')) return `${repository}/blob/${version}/${relative(root, target)}${hash}`
  return asIndex(path) + hash
}

function markdown(md) {
  md.core.ruler.push('fleetgate-links', state => {
    for (const block of state.tokens) {
      for (const token of block.children ?? []) {
        if (token.type === 'link_open') token.attrSet('href', rewriteLink(token.attrGet('href'), state.env.path))
      }
    }
  })
  // Pages are no Vue components: print tags instead of calling them, and drop comments.
  const html = (tokens, i) => tokens[i].content.trimStart().startsWith('<!--') ? '' : md.utils.escapeHtml(tokens[i].content)
  md.renderer.rules.html_inline = html
  md.renderer.rules.html_block = html
  md.renderer.rules.text = (tokens, i) => md.utils.escapeHtml(tokens[i].content).replaceAll('{{', '<span v-pre>{{</span>')
}

export default {
  title: 'fleetgate',
  description: 'Manage many Kubernetes clusters from one hub',
  head: [['link', { rel: 'icon', href: `data:image/svg+xml;base64,${readFileSync(join(root, 'charts/icon.svg'), 'base64')}` }]],
  srcDir,
  outDir,
  base,
  rewrites: asIndex,
  // The pages are outside the folder that has node_modules.
  vite: { resolve: { alias: [{ find: /^vue(?=$|\/)/, replacement: resolve('node_modules/vue') }] } },
  markdown: { anchor: { slugify }, config: markdown },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Changelog', link: `${repository}/blob/${version}/CHANGELOG.md` },
      { text: 'Source', link: repository }
    ],
    sidebar: sections.map(({ text, pages }) => ({
      text,
      collapsed: pages.length > 10,
      items: pages.map(page => ({ text: title(page), link: '/' + asIndex(page).replace(/(index)?\.md$/, '') }))
    }))
  }
}
