# install and uninstall, under DESTDIR PREFIX.

ROOT = $(DESTDIR)$(PREFIX)
# The command without symbols and debug information, which are most of its size. It is linked that way, not
# changed afterwards, so that the signature a Mac asks for stays valid.
STRIPPED = $(if $(DEBUG)$(SANITIZE),,$(if $(MAC),-Wl$(comma)-S$(comma)-x,-Wl$(comma)-s))
comma   := ,
# Printed by the command itself: the manual page, and completions for bash, zsh and fish.
PAGES    = share/man/man1/mica.1 share/bash-completion/completions/mica share/zsh/site-functions/_mica \
	share/fish/vendor_completions.d/mica.fish
INSTALLED = $(addprefix $(ROOT)/,$(wildcard include/*.h) lib/$(notdir $(LIBRARY)) $(addprefix lib/,$(call shared,.$(VERSION)) \
	$(SONAME) $(notdir $(SHARED))) lib/pkgconfig/mica.pc bin/mica $(PAGES))

$(BUILD)/stripped/mica: $(CLI_OBJ) $(LIBRARY)
	@mkdir -p $(@D)
	$(LINK) $(STRIPPED)

install: all $(BUILD)/stripped/mica ## header, libraries, mica.pc, the stripped command, its manual page and completions, under DESTDIR PREFIX
	install -d $(ROOT)/include $(ROOT)/lib/pkgconfig $(ROOT)/bin
	install -m 644 include/*.h $(ROOT)/include/
	install -m 644 $(LIBRARY) $(ROOT)/lib/
	install -m 755 $(SHARED) $(ROOT)/lib/$(call shared,.$(VERSION))
	ln -sf $(call shared,.$(VERSION)) $(ROOT)/lib/$(SONAME)
	ln -sf $(SONAME) $(ROOT)/lib/$(notdir $(SHARED))
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' tools/mica.pc.in > $(ROOT)/lib/pkgconfig/mica.pc
	install -m 755 $(BUILD)/stripped/mica $(ROOT)/bin/
	install -d $(addprefix $(ROOT)/,$(dir $(PAGES)))
	$(BUILD)/stripped/mica man > $(ROOT)/$(word 1,$(PAGES))
	$(BUILD)/stripped/mica completions bash > $(ROOT)/$(word 2,$(PAGES))
	$(BUILD)/stripped/mica completions zsh > $(ROOT)/$(word 3,$(PAGES))
	$(BUILD)/stripped/mica completions fish > $(ROOT)/$(word 4,$(PAGES))

uninstall: ## remove what install of the same version put there
	rm -f $(INSTALLED)

.PHONY: install uninstall
