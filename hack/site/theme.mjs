// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// The default theme with the reader's own fonts and a list of versions.
import { useData } from 'vitepress'
import theme from 'vitepress/theme-without-fonts'
import './theme.css'
import { defineComponent, h, onMounted, ref } from 'vue'

const style = 'appearance: auto; margin-left: 16px; padding: 2px 6px; border: 1px solid var(--vp-c-divider); border-radius: 6px'

// Versions reads versions.json of the server, so that a page of an old version lists newer ones.
const Versions = defineComponent(() => {
  const [, root, current] = useData().site.value.base.match(/^(.*\/)([^/]+)\/$/)
  const versions = ref([current])
  onMounted(async () => {
    const response = await fetch(`${root}versions.json`)
    if (response.ok) versions.value = await response.json()
  })
  const open = event => location.assign(`${root}${event.target.value}/`)
  return () => h('select', { 'aria-label': 'Version', value: current, style, onChange: open },
    versions.value.map(version => h('option', { value: version }, version)))
})

export default { extends: theme, Layout: () => h(theme.Layout, null, { 'nav-bar-content-after': () => h(Versions) }) }
