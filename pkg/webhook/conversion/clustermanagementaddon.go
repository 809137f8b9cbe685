// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"

	addonv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1beta1"
)

func managementToBeta(object map[string]any) fields {
	spec, saved := child(object, "spec"), fields{}
	saved.takeAddOnConfiguration(spec)
	each(spec, "supportedConfigs", func(_ int, config map[string]any) {
		referent, found := config["defaultConfig"].(map[string]any)
		delete(config, "defaultConfig")
		if !found {
			config["name"] = addonv1beta1.NoDefaultConfig
			return
		}
		set(config, "name", text(referent, "name"))
		set(config, "namespace", text(referent, "namespace"))
		// No object can have this name, but it would not survive.
		saved.incomplete = saved.incomplete || text(referent, "name") == addonv1beta1.NoDefaultConfig
	})
	move(spec, "supportedConfigs", "defaultConfigs")
	move(child(object, "status"), "defaultconfigReferences", "defaultConfigReferences")
	return saved
}

func managementToStored(object map[string]any, saved fields) error {
	spec := in(object, "spec")
	if err := objects(spec, "defaultConfigs", func(i int, config map[string]any) error {
		name, namespace := text(config, "name"), text(config, "namespace")
		delete(config, "name")
		delete(config, "namespace")
		switch {
		case name == "":
			return fmt.Errorf("spec.defaultConfigs[%d].name is missing", i)
		case name == addonv1beta1.NoDefaultConfig && namespace != "":
			return fmt.Errorf("spec.defaultConfigs[%d].namespace must be empty with the reserved name %s", i, name)
		case name == addonv1beta1.NoDefaultConfig:
			return nil
		}
		referent := map[string]any{"name": name}
		set(referent, "namespace", namespace)
		config["defaultConfig"] = referent
		return nil
	}); err != nil {
		return err
	}
	move(spec, "defaultConfigs", "supportedConfigs")
	move(child(object, "status"), "defaultConfigReferences", "defaultconfigReferences")
	saved.giveAddOnConfiguration(spec)
	return nil
}
